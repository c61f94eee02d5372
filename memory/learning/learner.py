"""Learns after the reply: carries out tool writes, embeds texts, brings behaviors up to date.

No turn waits for it. It works from watermarks, so a crash or a refusal only delays it. A watermark
moves in the same step that writes what was learned up to it, so nothing is learned twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from time import time
from typing import Literal

import structlog

from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.learning_behavior import LearningBehavior
from memory.behaviors.running_state import RunningState
from memory.learning.batch_learner import BatchLearner, earliest
from memory.learning.progress import MAX_SAID, LearnerBusy, Progress, pause_after, progress_of
from memory.learning.tool_writes import ToolWriter
from memory.learning.vectors import VectorLearner
from memory.limits.usage import next_day
from memory.scopes.changes import NotWritten, Write
from memory.scopes.fields import Digest, LearningPause, WaitingWrite
from memory.scopes.history import Histories
from memory.store.commands import Command, ScriptCall
from memory.store.keys import Scope
from memory.store.tasks import end_tasks
from memory.text.internal_model import InternalModel, ModelTrouble

log = structlog.get_logger(__name__)

_LEASE_MS = 15_000
_BUSY_AGAIN_S = 10  # another process learns from the conversation
_HARDLY_LATER_S = 2  # a due time that is so much too late stays
_REFUSED_AGAIN_S = 5  # something was erased meanwhile
_LOOK_AGAIN_S = 60  # after something was written
"""If a process dies between a write and its mark ✍, the next look sets the mark."""


@dataclass(frozen=True, slots=True)
class LearningRound:
    """What one round did: messages and records embedded, model calls, entries written."""

    messages: int = 0
    records: int = 0
    calls: int = 0
    entries: int = 0


@dataclass(eq=False)
class ConversationLearner:
    """Learns from one conversation at a time; a lease keeps other processes out meanwhile."""

    histories: Histories
    writer: ToolWriter
    vectors: VectorLearner | None
    due: MutableMapping[Scope, float]  # `TurnStore.learning_due`
    asked_for: set[Scope] = field(default_factory=set)  # somebody looks at what is learned in these

    def __post_init__(self) -> None:
        self._scopes, self._store = self.histories.scopes, self.histories.scopes.store
        self.enable()

    def enable(
        self,
        behaviors: Sequence[AIContextBehavior] = (),
        model: InternalModel | None = None,
        model_name: str = "",
        may_ask: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """Let behaviors learn if there is a model; before this, only vectors are learned.

        A conversation that waits after failures of a model waits no longer for one of another name.
        One whose payer may not ask a model (`may_ask`) waits for its next turn or the next day.
        """
        self._model, self._model_name, self._may_ask = model, model_name, may_ask
        self._behaviors = tuple(each for each in behaviors if isinstance(each, LearningBehavior))
        self._batches = BatchLearner(self._scopes, self.histories.tokens, self._behaviors)
        states = (each for each in self._behaviors if isinstance(each, RunningState))
        self.writer.state = next(states, None)

    async def learn(self, conversation: Scope) -> LearningRound:
        """Learn what is due; raise `LearnerBusy` if another process does.

        Nothing is done and nothing is sent if all can wait until the due time that this process has
        just stored with a turn. In a conversation that is `asked_for` no behavior waits for more
        turns or for a pause; synopses still wait for the end of the session. If a model fails,
        first do all that does not need it, then raise `InternalModelUnavailable` or
        `EmbeddingsUnavailable`. What was written stays. A stored due time moves to the next
        attempt. A failure of this conversation alone doubles the wait.
        """
        noted = self.due.pop(conversation, None)
        is_asked_for = conversation in self.asked_for
        self.asked_for.discard(conversation)
        try:
            if noted is not None and not is_asked_for and await self._can_wait(conversation, noted):
                return LearningRound()
            return await self._learn_under_lease(conversation, is_asked_for=is_asked_for)
        except Exception:
            if is_asked_for:
                self.asked_for.add(conversation)
            raise

    async def _learn_under_lease(self, conversation: Scope, *, is_asked_for: bool) -> LearningRound:
        """Hold the lease while everything that is due is learned, then move the due time."""
        store, learning = self._store, self._store.keys.learning
        lease = store.lease(store.keys.learner(conversation), _LEASE_MS)
        taking = {"token": lease.token, "lease_ms": lease.ttl_ms}
        finish: list[Command | ScriptCall] = [lease.releasing]
        renewing = asyncio.create_task(lease.keep())
        try:
            progress = await progress_of(self._scopes, conversation, taking)
            noted, progress = progress.due_at, replace(progress, is_asked_for=is_asked_for)
            done, due_in_s, failures = await self._learn_round(progress)
            due = time() + due_in_s
            if noted is not None and noted > due + _HARDLY_LATER_S:
                finish = [("ZADD", learning, "LT", due, conversation.tag), *finish]
            elif noted is not None and noted < due:
                # A later time, or none, is stored only if the stored one is still `noted`.
                later = {"next": due} if isfinite(due) else {}
                request = {"member": conversation.tag, "score": repr(noted), **later}
                finish = [store.scripts["take_due"].command([learning], request), *finish]
            if progress.facts is not progress.here and progress.facts.newest:
                # A turn renews only the expiry of the conversation.
                finish = [*self._renewal(progress), *finish]
            if not failures:
                return done
            raise failures[0]
        except LearnerBusy:
            # The process that holds the lease may be dead, so look again soon.
            finish = [("ZADD", learning, "LT", time() + _BUSY_AGAIN_S, conversation.tag)]
            raise
        finally:
            await end_tasks([renewing])
            await asyncio.shield(store.client.pipeline(finish))

    def _renewal(self, progress: Progress) -> list[Command | ScriptCall]:
        """Return the commands that renew the expiry of a person's facts, at most once an hour."""
        facts = progress.facts
        if time() - facts.renewed_at < min(3_600, self._store.ttl_s / 24):
            return []
        facts.renewed_at = time()
        touch = self._store.call("touch", facts.scope, {"ttl_s": self._store.ttl_s})
        return [self._store.indexing(facts.scope), touch]

    async def _can_wait(self, conversation: Scope, noted: float) -> bool:
        """Return whether nothing is due before `noted`, by what this process holds."""
        held = self._scopes.held
        here, facts = held.get(conversation), held.get(conversation.facts_scope)
        if not (here and facts and here.is_whole and facts.is_whole and here.messages.is_whole):
            return False
        said = here.messages
        if here.waiting_writes or (self.vectors and self.vectors.has_many(said)):
            return False
        progress = Progress(
            here=here,
            facts=facts,
            session=said.session,
            now=time(),
            said=said.messages[-MAX_SAID:],
            embedded=said.newest_vector,
            fingerprint=said.fingerprint,
        )
        if not (self._model and self._behaviors):
            return True
        with suppress(NotWritten):  # something was erased since
            due_in_s = earliest(progress, await self._batches.waiting(progress))
            return due_in_s > 0 and progress.now + due_in_s + _HARDLY_LATER_S >= noted
        return False

    async def _learn_round(
        self, progress: Progress
    ) -> tuple[LearningRound, float, Sequence[ModelTrouble]]:
        """Return what was done, in how many seconds more is due, and which models failed."""
        began, newest = progress.now, progress.facts.newest
        done, due_in_s = LearningRound(), inf
        no_vectors: list[ModelTrouble] = []
        no_answer: list[ModelTrouble] = []
        fingerprint = self.vectors.embedder.fingerprint if self.vectors else ""
        embedding = _pause_of(progress, "vectors", fingerprint)
        asking = _pause_of(progress, "batches", self._model_name)
        if self._may_ask and not await self._may_ask():
            embedding = replace(embedding, again_at=max(next_day(), embedding.again_at))
            asking = replace(asking, again_at=max(next_day(), asking.again_at))
        vectors = self.vectors if embedding.again_at <= began else None
        model = self._model if asking.again_at <= began else None
        try:
            progress = await self.writer.carry_out(progress)
            is_off = progress.here.is_off
            if vectors is not None and not is_off:
                with _collected(no_vectors):
                    done = replace(done, messages=await vectors.learn_messages(progress))
            if model is not None and self._behaviors and not is_off:
                with _collected(no_answer):
                    batches = await self._batches.learn_due(model, progress, asking.failures)
                    progress, calls, entries, due_in_s = batches
                    done = replace(done, calls=calls, entries=entries)
            # A behavior of the conversation itself removes the digests it has learned from. Without
            # one, nobody needs them.
            digests = [each.name for each in progress.here.all(Digest)]
            if digests and all(each.is_personal for each in self._batches.within(progress)):
                await self._scopes.write(progress.here, Write(removed=digests))
            if vectors is not None:
                for scope_memory in dict.fromkeys((progress.here, progress.facts)):
                    with _collected(no_vectors):
                        more = await vectors.learn_records(scope_memory)
                        done = replace(done, records=done.records + more)
            again_in_s = (
                await self._note_outcome(progress, began, embedding, no_vectors),
                await self._note_outcome(progress, began, asking, no_answer),
                _LOOK_AGAIN_S if progress.facts.newest > newest else inf,
                *(each.expires_at - progress.now for each in progress.here.all(WaitingWrite)),
            )
        except NotWritten as refusal:
            tag = progress.here.scope.tag
            log.info("learning starts again", conversation=tag, why=str(refusal))
            return done, _REFUSED_AGAIN_S, ()
        return done, min(due_in_s, *again_in_s), (*no_answer, *no_vectors)

    async def _note_outcome(
        self,
        progress: Progress,
        began: float,
        pause: LearningPause,
        failures: Sequence[ModelTrouble],
    ) -> float:
        """Store if a model failed; return in how many seconds to try again, inf after a success."""
        if pause.again_at > began:  # this round has not asked the model
            return pause.again_at - progress.now
        rests_s = max((error.rests_s for error in failures), default=0.0)
        if rests_s:  # the model failed for everybody, which does not count for this conversation
            return rests_s
        if failures:
            pause_s = pause_after(pause.failures)
            longer = replace(pause, failures=pause.failures + 1, again_at=progress.now + pause_s)
            await self._scopes.write(progress.here, Write(fields=[longer]))
            return pause_s
        if pause.name in progress.here.fields:
            await self._scopes.write(progress.here, Write(removed=[pause.name]))
        return inf


def _pause_of(progress: Progress, task: Literal["batches", "vectors"], model: str) -> LearningPause:
    """Return how long a conversation waits after failures of a task: a minute to a day.

    It is stored in the scope, so a restart does not end it. A success removes it, and failures of
    another model do not count.
    """
    stored = progress.here.get(LearningPause, task)
    return stored if stored and stored.model == model else LearningPause(task, model=model)


@contextmanager
def _collected(failures: list[ModelTrouble]) -> Iterator[None]:
    """Go on if a model gives no answer, and append the error to `failures`."""
    try:
        yield
    except ModelTrouble as error:
        failures.append(error)
