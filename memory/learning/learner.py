"""Learns after the reply: does what tools want written, embeds, brings behaviors up to date.

Works from watermarks, so a crash or a refusal only delays it. Nothing is learned twice: a watermark
moves in the same step that writes what was learned up to it. No turn waits for it.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import inf, isfinite
from secrets import token_hex
from time import time

import structlog

from memory.correcting import Correcting
from memory.embeddings import EmbeddingsUnavailable
from memory.keys import Conversation
from memory.learning.answered import answered_behind
from memory.learning.ledger import Ledger
from memory.learning.lesson import LearningBehavior, Lesson, PartRejected, Unlearned
from memory.learning.model import InternalModel
from memory.learning.request import instructions, material
from memory.learning.sittings import first_sitting
from memory.learning.tool_writes import ToolWriter, WithDomain, without_domain
from memory.learning.vectors import VectorLearner
from memory.messages import Message
from memory.notebook.notebooks import Notebooks, NotWritten, Writing
from memory.occasion import facts_scope
from memory.protocol.store import Store
from memory.protocol.switch import MemorySwitch
from memory.shape import PartInvalid, Shape
from memory.store_errors import StoreError
from memory.tokens import TokenCounter

log = structlog.get_logger(__name__)

_LEASE_MS = 15_000
_RENEW_S = 5
_BUSY_AGAIN_S = 10
_LESSON_TOKENS = 4_000
"""What one internal call reads at most; a long backlog is learned in several."""
_ALONE_AFTER = 2
_REFUSED_AGAIN_S = 5


class LearnerBusy(Exception):  # noqa: N818 - says when
    """Raised when another process learns from the conversation, or had begun to when it died."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one round did: messages and records embedded, internal calls made, entries written."""

    messages: int = 0
    records: int = 0
    calls: int = 0
    entries: int = 0


@dataclass(frozen=True, slots=True)
class Teaching:
    """Who learns, and from which model's answers; without a model nobody does.

    `with_domain` sets domain fields of the running state, for operators' tools.
    """

    behaviors: Sequence[LearningBehavior] = ()
    model: InternalModel | None = None
    with_domain: WithDomain = without_domain


class ConversationLearner:
    """Learns one conversation at a time, each in one process at a time."""

    def __init__(
        self,
        store: Store,
        notebooks: Notebooks,
        tokens: TokenCounter,
        vectors: VectorLearner | None,
        teaching: Teaching,
    ) -> None:
        self._store = store
        self._notebooks = notebooks
        self._tokens = tokens
        self._vectors = vectors
        self._model = teaching.model
        self._behaviors = tuple(teaching.behaviors)
        correcting, switch = Correcting(store, notebooks), MemorySwitch(store)
        self._writer = ToolWriter(notebooks, correcting, switch, teaching.with_domain)
        self._shape = Shape.of({each.name: each.part for each in self._behaviors})

    async def learn(self, conversation: Conversation) -> Progress:
        """Learn what is due; raise `LearnerBusy` where another process is at it.

        Raise `InternalModelUnavailable`, or `EmbeddingsUnavailable` when all but vectors is done;
        what was written until then stays, and the note that something is to be learned stays too.
        """
        keys, token = self._store.keys, token_hex(16)
        lease = keys.learner(conversation)
        if not await self._store.scripts["lease"]([lease], (token, _LEASE_MS)):
            # Whoever has it may be dead: look again soon.
            due = time() + _BUSY_AGAIN_S
            await self._store.client.call("ZADD", keys.learning, "LT", due, conversation.tag)
            raise LearnerBusy(conversation.tag)
        renewing = asyncio.create_task(self._renew(lease, token))
        try:
            noted = await self._store.client.call("ZSCORE", keys.learning, conversation.tag)
            progress, due_in_s = await self._learn(conversation)
            if noted is not None:
                await self._note(conversation, repr(noted), due_in_s)
            return progress
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await asyncio.shield(self._store.scripts["unlease"]([lease], (token,)))

    async def _renew(self, lease: str, token: str) -> None:
        while True:
            await asyncio.sleep(_RENEW_S)
            with suppress(StoreError):
                await self._store.scripts["lease"]([lease], (token, _LEASE_MS))

    async def _note(self, conversation: Conversation, score: str, due_in_s: float) -> None:
        """Leave a note for when more is due, unless somebody has left another meanwhile."""
        learning, tag = [self._store.keys.learning], conversation.tag
        if isfinite(due_in_s):
            due = time() + due_in_s
            await self._store.scripts["postpone"](learning, (tag, score, due))
        else:
            await self._store.scripts["take_due"](learning, (tag, score))

    async def _learn(self, conversation: Conversation) -> tuple[Progress, float]:
        meta = await self._store.client.call(
            *("HMGET", self._store.keys.conversation(conversation).meta),
            *("sitting", "off_at"),
        )
        is_off = meta[1] is not None
        ledger = await self._ledger(conversation, int(meta[0] or 0))
        messages, records, calls, entries, due_in_s = 0, 0, 0, 0, inf
        without_vectors: list[EmbeddingsUnavailable] = []
        try:
            drop_in_s = await self._writer.carry_out(ledger, is_off=is_off)
            if self._vectors is not None and not is_off:
                with _later(without_vectors):
                    messages = await self._vectors.learn_messages(conversation)
            if self._model is not None and self._behaviors and not is_off:
                calls, entries, due_in_s = await self._teach(self._model, ledger)
            due_in_s = min(due_in_s, drop_in_s)
            await self._drop_unwanted_digests(conversation)
            if ledger.facts is not ledger.here and ledger.facts.newest:
                await self._notebooks.touch(ledger.facts.scope)
            if self._vectors is not None:
                for scope in dict.fromkeys((conversation, facts_scope(conversation))):
                    with _later(without_vectors):
                        records += await self._vectors.learn_records(scope)
        except NotWritten as refusal:
            log.info("learning begins again", conversation=conversation.tag, why=str(refusal))
            due_in_s = _REFUSED_AGAIN_S
        else:
            if without_vectors:
                raise without_vectors[0]
        return Progress(messages, records, calls, entries), due_in_s

    async def _drop_unwanted_digests(self, conversation: Conversation) -> None:
        """Let go of what tools did where nobody will learn from it."""
        if not all(each.is_personal for each in self._behaviors):
            return
        ledger = await self._ledger(conversation, 0)
        if ledger.digests:
            gone = {f"d:{seq}": (digest, "") for seq, digest in ledger.digests.items()}
            await self._notebooks.write(ledger.here, Writing((), gone))

    async def _ledger(self, conversation: Conversation, sitting: int) -> Ledger:
        here = await self._notebooks.read(conversation)
        scope = facts_scope(conversation)
        facts = here if scope == conversation else await self._notebooks.read(scope)
        return Ledger(conversation, here, facts, sitting, time())

    async def _teach(self, model: InternalModel, ledger: Ledger) -> tuple[int, int, float]:
        """Ask and write until nothing is due; return calls, entries and when more will be."""
        calls = entries = 0
        while True:
            ledger = await self._ledger(ledger.conversation, ledger.sitting)
            waiting = await self._waiting(ledger)
            due = _due(ledger, waiting) and _due(ledger, _shared(waiting))
            if not due:
                waits = (_due_in(ledger, *each) for each in waiting.items())
                return calls, entries, min(waits, default=inf)
            alone = [each for each in due if ledger.failures(each)[0] >= _ALONE_AFTER]
            asked = alone[:1] or due
            lessons = {each: _lesson(ledger, each, waiting[each]) for each in asked}
            others = [each for each in self._behaviors if each not in asked]
            answer = await model.fill(
                instructions(asked, others), material(lessons, self._tokens), self._shape
            )
            calls += 1
            for each, lesson in lessons.items():
                entries += await self._take(ledger, each, lesson, answer.get(each.name))

    async def _waiting(self, ledger: Ledger) -> dict[LearningBehavior, Unlearned]:
        """Return what behaviors have not learned yet, without those that are up to date."""
        watermarks = {each: ledger.watermark(each) for each in self._behaviors}
        behind = await answered_behind(self._store, ledger.here, watermarks.values())
        waiting = {}
        for behavior, watermark in watermarks.items():
            if newer := behind[watermark]:
                quiet_s = max(0.0, ledger.now - newer[-1].sent_at)
                ended = first_sitting(newer, ledger.sitting, ledger.now)
                waiting[behavior] = Unlearned(newer, quiet_s, ended)
        return waiting

    async def _take(
        self, ledger: Ledger, behavior: LearningBehavior, lesson: Lesson, raw: object
    ) -> int:
        """Write what one part of an answer taught; return how many entries."""
        try:
            learned = behavior.learn(lesson, self._shape.validate(behavior.name, raw))
        except (PartInvalid, PartRejected) as error:
            log.warning("part rejected", behavior=behavior.name, reason=str(error))
            await self._notebooks.write(ledger.target(behavior), ledger.after_failure(behavior))
            return 0
        reach = learned.reach or lesson.messages[-1].seq
        others = [each for each in self._behaviors if each is not behavior]
        writing = ledger.after(behavior, learned, reach, ledger.learned_by_all(others, reach))
        await self._notebooks.write(ledger.target(behavior), writing)
        return len(learned.entries)


@contextmanager
def _later(without_vectors: list[EmbeddingsUnavailable]) -> Iterator[None]:
    """Go on where no vectors are to be had now, and keep the error for later."""
    try:
        yield
    except EmbeddingsUnavailable as error:
        without_vectors.append(error)


def _due(ledger: Ledger, waiting: Mapping[LearningBehavior, Unlearned]) -> list[LearningBehavior]:
    return [each for each, unlearned in waiting.items() if _due_in(ledger, each, unlearned) <= 0]


def _shared(
    waiting: Mapping[LearningBehavior, Unlearned],
) -> dict[LearningBehavior, Unlearned]:
    """Return the same for when a request is made anyway."""
    return {each: replace(unlearned, is_shared=True) for each, unlearned in waiting.items()}


def _due_in(ledger: Ledger, behavior: LearningBehavior, unlearned: Unlearned) -> float:
    """Return in how many seconds a behavior wants to learn; 0 for now."""
    pause_s = ledger.failures(behavior)[1] - ledger.now
    return max(pause_s, 0.0 if behavior.is_due(unlearned) else behavior.due_in(unlearned))


def _lesson(ledger: Ledger, behavior: LearningBehavior, unlearned: Unlearned) -> Lesson:
    messages = _within(behavior.covers(unlearned), _LESSON_TOKENS)
    return Lesson(
        conversation=ledger.conversation,
        messages=messages,
        digests=ledger.digests,
        here=ledger.here,
        facts=ledger.facts,
        now=ledger.now,
    )


def _within(messages: Sequence[Message], most_tokens: int) -> Sequence[Message]:
    """Return whole exchanges from the first on; one is taken however long it is."""
    taken, tokens = 0, 0
    for at, message in enumerate(messages):
        tokens += message.tokens
        if tokens > most_tokens and taken:
            break
        if at + 1 == len(messages) or messages[at + 1].exchange != message.exchange:
            taken = at + 1
    return messages[:taken]
