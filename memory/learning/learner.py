"""Learns after the reply: does what tools want written, embeds, brings behaviors up to date.

Works from watermarks, so a crash or a refusal only delays it. Nothing is learned twice: a watermark
moves in the same step that writes what was learned up to it. No turn waits for it.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf, isfinite
from secrets import token_hex
from time import time

import structlog

from memory.behaviors.call_context import facts_scope
from memory.behaviors.learning_behavior import LearningBehavior
from memory.erasure.correcting import Correcting
from memory.erasure.pause import MemorySwitch
from memory.learning.batch_learner import BatchLearner
from memory.learning.consent import WithDomain
from memory.learning.pauses import Pause
from memory.learning.progress import Ledger, ledger_of
from memory.learning.tool_writes import ToolWriter, without_domain
from memory.learning.vectors import VectorLearner
from memory.scopes.changes import NotWritten, Write
from memory.scopes.fields import Digest
from memory.scopes.scopes import Scopes
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.errors import MemoryFailure, StoreError
from memory.store.keys import Scope
from memory.store.store import Store
from memory.text.internal_model import InternalModel, InternalModelUnavailable
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_LEASE_MS = 15_000
_RENEW_S = 5
_BUSY_AGAIN_S = 10
_REFUSED_AGAIN_S = 5

Unavailable = EmbeddingsUnavailable | InternalModelUnavailable
"""That a model gives no answer now."""


class LearnerBusy(MemoryFailure):
    """Raised when another process learns from the conversation, or had begun to when it died."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one round did: messages and records embedded, internal calls made, entries written."""

    messages: int = 0
    records: int = 0
    calls: int = 0
    entries: int = 0


@dataclass(frozen=True, slots=True)
class LearningConfig:
    """Who learns, and from which model's answers; without a model nobody does.

    `with_domain` sets domain fields of the running state, for operators' tools. A conversation that
    pauses because of one model is tried again with another of a different `model_name`.
    """

    behaviors: Sequence[LearningBehavior] = ()
    model: InternalModel | None = None
    with_domain: WithDomain = without_domain
    model_name: str = ""


class ConversationLearner:
    """Learns one conversation at a time, each in one process at a time."""

    def __init__(
        self,
        store: Store,
        scopes: Scopes,
        tokens: TokenCounter,
        vectors: VectorLearner | None,
        teaching: LearningConfig,
    ) -> None:
        self._store = store
        self._scopes = scopes
        self._tokens = tokens
        self._vectors = vectors
        self._model = teaching.model
        self._model_name = teaching.model_name
        self._behaviors = tuple(teaching.behaviors)
        correcting, switch = Correcting(store, scopes), MemorySwitch(store)
        self._writer = ToolWriter(scopes, correcting, switch, teaching.with_domain)
        self._lessons = BatchLearner(store, scopes, tokens, self._behaviors)

    async def learn(self, conversation: Scope) -> Progress:
        """Learn what is due; raise `LearnerBusy` where another process is at it.

        Raise `InternalModelUnavailable` or `EmbeddingsUnavailable` when all that needs no such
        model is done. What was written stays, and a note says when it is tried again: each failure
        of the conversation doubles the pause.
        """
        keys, token = self._store.keys, token_hex(16)
        lease = keys.learner(conversation)
        if not await self._store.scripts["lease"]([lease], {"token": token, "ttl_ms": _LEASE_MS}):
            # Whoever has it may be dead: look again soon.
            due = time() + _BUSY_AGAIN_S
            await self._store.client.call("ZADD", keys.learning, "LT", due, conversation.tag)
            raise LearnerBusy(conversation.tag)
        renewing = asyncio.create_task(self._renew(lease, token))
        try:
            noted = await self._store.client.call("ZSCORE", keys.learning, conversation.tag)
            progress, due_in_s, failures = await self._learn(conversation)
            if noted is not None:
                await self._note(conversation, repr(noted), due_in_s)
            if failures:
                raise failures[0]
            return progress
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await asyncio.shield(self._store.scripts["unlease"]([lease], {"token": token}))

    async def _renew(self, lease: str, token: str) -> None:
        while True:
            await asyncio.sleep(_RENEW_S)
            with suppress(StoreError):
                await self._store.scripts["lease"]([lease], {"token": token, "ttl_ms": _LEASE_MS})

    async def _note(self, conversation: Scope, score: str, due_in_s: float) -> None:
        """Leave a note for when more is due, unless somebody has left another meanwhile."""
        learning, tag = [self._store.keys.learning], conversation.tag
        if isfinite(due_in_s):
            due = time() + due_in_s
            await self._store.scripts["postpone"](
                learning, {"member": tag, "score": score, "next": due}
            )
        else:
            await self._store.scripts["take_due"](learning, {"member": tag, "score": score})

    async def _learn(self, conversation: Scope) -> tuple[Progress, float, Sequence[Unavailable]]:
        """Return what was done, in how many seconds more will be due, and what failed."""
        meta = await self._store.client.call(
            *("HMGET", self._store.keys.scope(conversation).meta),
            *("session", "off_at"),
        )
        is_off = meta[1] is not None
        ledger = await ledger_of(self._scopes, conversation, int(meta[0] or 0))
        messages, records, calls, entries, due_in_s = 0, 0, 0, 0, inf
        without_vectors: list[Unavailable] = []
        without_answer: list[Unavailable] = []
        embedding, teaching = self._pauses(ledger)
        vectors = self._vectors if embedding.is_over(ledger.now) else None
        model = self._model if teaching.is_over(ledger.now) else None
        try:
            drop_in_s = await self._writer.carry_out(ledger, is_off=is_off)
            if vectors is not None and not is_off:
                with _later(without_vectors):
                    messages = await vectors.learn_messages(conversation)
            if model is not None and self._behaviors and not is_off:
                with _later(without_answer):
                    calls, entries, due_in_s = await self._lessons.learn(
                        model, ledger, teaching.failures
                    )
            await self._drop_unwanted_digests(conversation)
            if ledger.facts is not ledger.here and ledger.facts.newest:
                await self._scopes.touch(ledger.facts.scope)
            if vectors is not None:
                for scope in dict.fromkeys((conversation, facts_scope(conversation))):
                    with _later(without_vectors):
                        records += await vectors.learn_records(scope)
            again_in_s = (
                await self._settle(ledger, embedding, without_vectors),
                await self._settle(ledger, teaching, without_answer),
            )
            due_in_s = min(due_in_s, drop_in_s, *again_in_s)
        except NotWritten as refusal:
            log.info("learning begins again", conversation=conversation.tag, why=str(refusal))
            return Progress(messages, records, calls, entries), _REFUSED_AGAIN_S, ()
        progress = Progress(messages, records, calls, entries)
        return progress, due_in_s, (*without_answer, *without_vectors)

    def _pauses(self, ledger: Ledger) -> tuple[Pause, Pause]:
        """Return how long a conversation waits for vectors, and for the model of internal calls."""
        embedding = self._vectors.model if self._vectors else ""
        return (
            Pause.of(ledger.here, "vectors", embedding),
            Pause.of(ledger.here, "lessons", self._model_name),
        )

    async def _settle(self, ledger: Ledger, pause: Pause, failures: Sequence[Unavailable]) -> float:
        """Note how it went; return in how many seconds it is tried again, infinity for done."""
        if not pause.is_over(ledger.now):
            return pause.again_at - ledger.now
        rests_s = max((error.rests_s for error in failures), default=0.0)
        if rests_s:  # not this conversation's fault
            return rests_s
        pause_s, fields = inf, pause.after_success()
        if failures:
            pause_s, fields = pause.after_failure(ledger.now)
        if fields:
            here = await self._scopes.read(ledger.conversation)
            await self._scopes.write(here, Write(fields=fields))
        return pause_s

    async def _drop_unwanted_digests(self, conversation: Scope) -> None:
        """Let go of what tools did where nobody will learn from it."""
        if not all(each.is_personal for each in self._behaviors):
            return
        ledger = await ledger_of(self._scopes, conversation, 0)
        if ledger.digests:
            gone = [digest.name for digest in ledger.here.all(Digest)]
            await self._scopes.write(ledger.here, Write(removed=gone))


@contextmanager
def _later(failures: list[Unavailable]) -> Iterator[None]:
    """Go on where a model gives no answer now, and keep the error for later."""
    try:
        yield
    except (EmbeddingsUnavailable, InternalModelUnavailable) as error:
        failures.append(error)
