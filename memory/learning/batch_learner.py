"""Asks the model what behaviors learn from a conversation, and writes it, until nothing is due.

Input that the model refuses is given again in smaller pieces. An exchange that it refuses again and
again is skipped, so that learning goes on after it.

The conversation is given as one JSON object a line. So nothing that people write can end their line
or imitate another. Nothing is learned from a turn without an answer, or from what was said while
memory was off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from itertools import pairwise
from math import inf
from zoneinfo import ZoneInfo

import orjson
import structlog

from memory.behaviors.learning_behavior import (
    MAX_STATE_BYTES,
    PROMPTS,
    Batch,
    Learned,
    LearningBehavior,
    PartRejected,
    Unlearned,
)
from memory.behaviors.statements import mode_in
from memory.learning.progress import Progress, messages_after, progress_after
from memory.learning.tool_writes import new_cards
from memory.message import Message
from memory.scopes.changes import Write, together
from memory.scopes.entries import Ended, Fact
from memory.scopes.fact_lists import split_by_place
from memory.scopes.fields import Digest
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.search.message_search import SESSION_PAUSE_S
from memory.text.internal_model import AnswerShape, InputRefused, InternalModel, PartInvalid
from memory.text.message_lines import NAMELESS, speaker_name
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import escaped

log = structlog.get_logger(__name__)

_ALONE_AFTER = 2  # after this many bad parts in a row a behavior is asked alone

_SKIP_AFTER = 2
"""An exchange is skipped only after this many failed rounds of the conversation. Before, the model
itself may be the cause, and would then refuse everything."""


Parts = Mapping[LearningBehavior, tuple[Batch, Learned | PartRejected]]
"""What each behavior was given, and what it learned from it."""


class BatchLearner:
    """Brings behaviors up to date, batch by batch."""

    def __init__(
        self, scopes: Scopes, tokens: TokenCounter, behaviors: Sequence[LearningBehavior]
    ) -> None:
        self._scopes = scopes
        self._tokens = tokens
        self._behaviors = behaviors
        self._shape = AnswerShape.of({each.name: each.part for each in behaviors})

    async def learn_due(
        self, model: InternalModel, progress: Progress, failures: int
    ) -> tuple[Progress, int, int, float]:
        """Return the new progress, the number of calls and of entries, and when more is due, in s.

        After `failures` of the conversation the first call is for one exchange and one behavior.
        Raise `InternalModelUnavailable` or `NotWritten`.
        """
        await self._scopes.index(progress.facts)  # learners search what is known
        await TokenCounter.load()
        calls = entries = 0
        max_exchanges = 0 if failures else inf
        while True:
            waiting = await self.waiting(progress)
            learners = due(progress, waiting)
            if not learners:
                return progress, calls, entries, earliest(progress, waiting)
            alone = [each for each in learners if progress.failures(each).count >= _ALONE_AFTER]
            asked = (alone or learners)[:1] if alone or max_exchanges < 1 else learners
            batches = {
                each: batch_of(progress, each, waiting[each], max_exchanges) for each in asked
            }
            zone = ZoneInfo(progress.facts.zone) if progress.facts.zone else self._scopes.zone
            instructions, content = request_of(batches, self._behaviors, self._tokens, zone)
            calls += 1
            try:
                answer = await model.fill(instructions, content, self._shape)
            except InputRefused:
                longest = max(len({m.exchange for m in b.messages}) for b in batches.values())
                max_exchanges = longest // 2
                if longest == len(asked) == 1:
                    if failures < _SKIP_AFTER:
                        raise
                    first, batch = asked[0], batches[asked[0]]
                    count = len(batch.messages)
                    log.warning("exchange skipped in learning", behavior=first.name, messages=count)
                    progress = await self._write(progress, {first: (batch, Learned())})
                continue
            max_exchanges = inf
            parts = {
                each: (batch, self._learned(progress, each, batch, answer.get(each.name)))
                for each, batch in batches.items()
            }
            progress = await self._write(progress, parts)
            learned = (part for _, part in parts.values() if isinstance(part, Learned))
            entries += sum(len(each.entries) for each in learned)

    async def waiting(self, progress: Progress) -> dict[LearningBehavior, Unlearned]:
        """Return what each behavior has not learned yet; those that are up to date are left out.

        Raise `NotWritten`.
        """
        waiting, answered = {}, dict[int, list[Message]]()
        for behavior in self.within(progress):
            watermark = progress.watermark(behavior)
            if watermark not in answered:
                answered[watermark] = await answered_after(self._scopes, progress, watermark)
            if newer := answered[watermark]:
                quiet_s = max(0.0, progress.now - newer[-1].sent_at)
                ended = first_session(newer, progress.session, progress.now)
                is_asked_for = progress.is_asked_for
                waiting[behavior] = Unlearned(newer, quiet_s, ended, is_asked_for=is_asked_for)
        return waiting

    def within(self, progress: Progress) -> list[LearningBehavior]:
        """Return the behaviors that learn from this conversation."""
        return [each for each in self._behaviors if each.reach.covers(progress.here.scope)]

    def _learned(
        self, progress: Progress, behavior: LearningBehavior, batch: Batch, raw: object
    ) -> Learned | PartRejected:
        """Return what a behavior learned from its part of the answer, or why it is not kept."""
        try:
            learned = behavior.learn(batch, self._shape.validate(behavior.name, raw))
        except (PartInvalid, PartRejected) as error:
            reason, feedback = str(error), error.tell if isinstance(error, PartRejected) else ""
        else:
            size = len((learned.state or "").encode())
            if size <= MAX_STATE_BYTES:
                is_untrusted = batch.holds_untrusted or progress.state(behavior).is_untrusted
                return replace(learned, is_untrusted=learned.is_untrusted or is_untrusted)
            reason = "state too large"
            feedback = f"the state would take {size} bytes, but at most {MAX_STATE_BYTES} are kept"
        log.warning("part rejected", behavior=behavior.name, reason=reason, feedback=feedback)
        return PartRejected(reason, feedback)

    async def _write(self, progress: Progress, parts: Parts) -> Progress:
        """Write what was learned in one step for each scope; return the new progress."""
        here, mode = progress.here, mode_in(progress.facts)
        writes: dict[ScopeMemory, list[Write]] = {}
        watermarks: dict[LearningBehavior, int] = {}
        for behavior, (batch, part) in parts.items():
            target = progress.target(behavior)
            if isinstance(part, PartRejected):
                write = progress.after_failure(behavior, part.tell)
            else:
                needs_yes = () if mode == "auto" else (Fact, Ended)
                entries = [each for each in part.entries if not isinstance(each, needs_yes)]
                cards = new_cards(part.entries, here, progress.now) if mode == "ask" else ()
                general, topic = split_by_place(entries)
                if topic or cards:
                    # The watermark moves with the next step. A repeat finds these facts known.
                    await self._scopes.write(here, Write(topic, cards))
                learned_up_to = batch.messages[-1].seq
                if target is here:
                    watermarks[behavior] = learned_up_to
                write = progress.after(behavior, replace(part, entries=general), learned_up_to)
            writes.setdefault(target, []).append(write)
        if watermarks:
            learners = self.within(progress)
            by_all = min(watermarks.get(each, progress.watermark(each)) for each in learners)
            learned = [each.name for each in here.all(Digest) if each.seq <= by_all]
            writes[here].append(Write(removed=learned))
        by_scope = {target: together(several) for target, several in writes.items()}
        return await progress_after(self._scopes, progress, by_scope)


_MAX_BATCH_TOKENS = 4_000
"""Tokens of messages in one model call; a longer backlog takes several calls."""


def due(
    progress: Progress, waiting: Mapping[LearningBehavior, Unlearned]
) -> list[LearningBehavior]:
    """Return the behaviors that learn now; if one is due, also those that join its model call."""
    if earliest(progress, waiting) > 0:
        return []
    shared = {each: replace(unlearned, is_shared=True) for each, unlearned in waiting.items()}
    return [each for each, unlearned in shared.items() if due_in(progress, each, unlearned) <= 0]


def earliest(progress: Progress, waiting: Mapping[LearningBehavior, Unlearned]) -> float:
    """Return in how many seconds the first behavior is due; infinity for never."""
    return min((due_in(progress, *each) for each in waiting.items()), default=inf)


def due_in(progress: Progress, behavior: LearningBehavior, unlearned: Unlearned) -> float:
    """Return in how many seconds a behavior is due; at most 0 for now, infinity for never."""
    pause_s = progress.failures(behavior).again_at - progress.now
    return max(pause_s, 0.0 if behavior.is_due(unlearned) else behavior.due_in(unlearned))


def batch_of(
    progress: Progress, behavior: LearningBehavior, unlearned: Unlearned, max_exchanges: float
) -> Batch:
    """Return the next batch of a behavior: the first whole exchanges, at least one."""
    selected = behavior.select_messages(unlearned)
    taken = tokens = exchanges = 0
    for at, message in enumerate(selected, start=1):
        tokens += message.tokens
        if taken and (tokens > _MAX_BATCH_TOKENS or exchanges >= max_exchanges):
            break
        if at == len(selected) or selected[at].exchange != message.exchange:
            taken = at
            exchanges += 1
    return Batch(
        conversation=progress.here.scope,
        messages=selected[:taken],
        digests={digest.seq: digest.text for digest in progress.here.all(Digest)},
        here=progress.here,
        facts=progress.facts,
        now=progress.now,
        refusal=progress.failures(behavior).feedback,
        state=progress.state(behavior).text,
    )


def first_session(messages: Sequence[Message], new_after: int, now: float) -> int:
    """Return how many of the messages form a first session that has ended; 0 if it goes on.

    A session ends by a pause, or by `/new` after the message of sequence `new_after`.
    """
    for at, (before, after) in enumerate(pairwise(messages), start=1):
        if after.sent_at - before.sent_at > SESSION_PAUSE_S or before.seq == new_after:
            return at
    last = messages[-1]
    has_ended = last.seq <= new_after or now - last.sent_at > SESSION_PAUSE_S
    return len(messages) if has_ended else 0


_PAGE = 200
_MAX_PAGES = 50  # at most this many pages without an answered exchange are skipped


async def answered_after(scopes: Scopes, progress: Progress, watermark: int) -> list[Message]:
    """Return the answered messages after a watermark, oldest first, at most one page.

    Only messages that the round has not read at its beginning are read from the store. Messages
    that must not be found by searches are left out: their person had a fact deleted that rests on
    them. Raise `NotWritten`.
    """
    hidden = progress.here.hidden
    for _ in range(_MAX_PAGES):
        page = await messages_after(scopes, progress, watermark, _PAGE)
        answered = {message.exchange for message in page if message.role == "assistant"}
        found = [each for each in page if each.exchange in answered and each.seq not in hidden]
        if found or len(page) < _PAGE:
            return found
        last = page[-1]  # its exchange may go on in the next page
        earlier = (each.seq for each in page if each.exchange != last.exchange)
        watermark = max(earlier, default=last.seq)
    return []


_MAX_MESSAGE_TOKENS = 600


def request_of(
    batches: Mapping[LearningBehavior, Batch],
    behaviors: Sequence[LearningBehavior],
    tokens: TokenCounter,
    zone: tzinfo,
) -> tuple[str, str]:
    """Return the instructions and the input of a model call for some of the behaviors.

    The instructions have their tasks; the parts of the others must stay null. The input has what
    they know and the messages of all batches, each message once.
    """
    tasks = "\n\n".join(f"## {each.name}\n{each.task}" for each in batches)
    names = ", ".join(each.name for each in behaviors if each not in batches)
    leave = f"\n\nLeave these parts null: {names}." if names else ""

    messages: dict[int, Message] = {}
    digests: dict[int, str] = {}
    known = []
    for behavior, batch in batches.items():
        messages |= {message.seq: message for message in batch.messages}
        digests |= batch.digests
        first, last = batch.messages[0].seq, batch.messages[-1].seq
        heading = f"## {behavior.name}: learns from messages {first} to {last}"
        known.append(f"{heading}\n{behavior.prompt_input(batch)}")
        if batch.refusal:
            known[-1] += f"\nYour last answer for this part was not kept: {batch.refusal}"
    lines = (_line(messages[seq], digests.get(seq, ""), tokens, zone) for seq in sorted(messages))
    content = "\n\n".join((*known, "## What was said\n" + "\n".join(lines)))
    return f"{PROMPTS['learning']['task']}\n\n{tasks}{leave}", content


def _line(message: Message, digest: str, tokens: TokenCounter, zone: tzinfo) -> str:
    """Return number, time, speaker and text of a message, and what the tools of its turn did.

    "untrusted" marks what was forwarded, quoted or read from a document. Long texts are shortened.
    """
    is_assistant = message.role == "assistant"
    line: dict[str, object] = {
        "n": message.seq,
        "on": _minute(message.sent_at, zone),
        "who": "assistant" if is_assistant else speaker_name(message.sender_name) or "user",
        "said": tokens.shorten(escaped(message.text), _MAX_MESSAGE_TOKENS),
    }
    if not message.is_first_party:
        line["untrusted"] = True
    if message.forwarded_from:
        line["forwarded_from"] = speaker_name(message.forwarded_from) or NAMELESS
        line["forwarded_on"] = _minute(message.forwarded_at, zone)
    if message.unseen:
        line["attached_but_not_seen"] = message.unseen
    if digest:
        line["tools"] = escaped(digest)
    return orjson.dumps(line).decode()


def _minute(at: float, zone: tzinfo) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M")
