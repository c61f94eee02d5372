"""How far each behavior has learned from a conversation: watermarks, failures, digests.

`Progress` is a value that says what to write; `progress_after` writes it and returns a new one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import time

from memory.behaviors.behavior_store import BehaviorState
from memory.behaviors.learning_behavior import Learned, LearningBehavior
from memory.message import Message
from memory.scopes.changes import NotWritten, Write
from memory.scopes.fields import STATE_LEARNER, Failures, Field, State, StateUntrusted, Watermark
from memory.scopes.log import Delta, message_of, paired, seq_of, version_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope

_FIRST_PAUSE_S = 60
_MAX_PAUSE_S = 86_400
_MAX_NEW = 1_000
MAX_SAID = 200


class LearnerBusy(Exception):
    """Raised if another process learns from the conversation, or died while it did."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A conversation while behaviors learn from it."""

    here: ScopeMemory  # the conversation
    facts: ScopeMemory  # in private chats that of the person, else the same object
    session: int  # messages up to this sequence belong to sessions that `/new` ended
    now: float  # Unix seconds
    # The newest messages, oldest first, without a gap; none while memory is off, or if this process
    # has read none.
    said: Sequence[Message]
    embedded: int  # messages up to this one have vectors, ...
    fingerprint: str  # ... all with this fingerprint
    is_asked_for: bool = False  # somebody looks at what was learned: do not wait for a pause
    due_at: float | None = None  # the stored due time of the next round (Unix seconds)

    def target(self, behavior: LearningBehavior) -> ScopeMemory:
        """Return the scope memory that a behavior writes to."""
        return self.facts if behavior.is_personal else self.here

    def watermark(self, behavior: LearningBehavior) -> int:
        """Return the sequence up to which a behavior has learned."""
        return self.target(behavior).watermark(self._learner(behavior))

    def failures(self, behavior: LearningBehavior) -> Failures:
        """Return how often its part was bad in a row, and when to ask for it again."""
        learner = self._learner(behavior)
        return self.target(behavior).get(Failures, learner) or Failures(learner)

    def state(self, behavior: LearningBehavior) -> BehaviorState:
        """Return the state of an operator's behavior, an empty one at first."""
        name = behavior.name
        return self.target(behavior).get(BehaviorState, name) or BehaviorState(name)

    def after(self, behavior: LearningBehavior, learned: Learned, learned_up_to: int) -> Write:
        """Return what to write after a behavior has learned up to this sequence."""
        target, learner = self.target(behavior), self._learner(behavior)
        fields: list[Field] = [Watermark(learner, learned_up_to)]
        if self.failures(behavior).count:
            fields.append(Failures(learner))
        if learned.state is not None and behavior.name == STATE_LEARNER:
            fields += (State(learned.state), StateUntrusted(learned.is_untrusted))
        elif learned.state is not None:
            last = learned_up_to if target is self.here else 0
            fields.append(BehaviorState(behavior.name, last, learned.is_untrusted, learned.state))
        return Write(learned.entries, fields, learned_from=self.here)

    def after_failure(self, behavior: LearningBehavior, feedback: str = "") -> Write:
        """Return what to write after a bad part; each one doubles the wait.

        `feedback` says to the model why, when it is asked again.
        """
        failures = self.failures(behavior)
        again_at = self.now + pause_after(failures.count)
        more = replace(failures, count=failures.count + 1, again_at=again_at, feedback=feedback)
        return Write(fields=[more], learned_from=self.here)

    def _learner(self, behavior: LearningBehavior) -> str:
        return learner_in(self.target(behavior).scope, behavior.name, self.here)


def pause_after(failures: int) -> float:
    """Return how many seconds to wait after one more failure: a minute, twice as long, to a day."""
    return float(min(_FIRST_PAUSE_S * 2**failures, _MAX_PAUSE_S))


async def progress_of(
    scopes: Scopes, conversation: Scope, lease: Mapping[str, object] | None = None
) -> Progress:
    """Read a conversation, and when it is due, in one round trip.

    `lease` has `token` and `lease_ms` if the caller has to hold the lease of the learner. Raise
    `LearnerBusy` if another process holds it.

    The facts are read before the messages, and an erasure takes the messages first. So nothing that
    rests on an erased message is written to the facts, because their version has changed.
    """
    due = ("ZSCORE", scopes.store.keys.learning, conversation.tag)
    others = [scope for scope in [conversation.facts_scope] if scope != conversation]
    while True:
        held = scopes.cursor(conversation)
        after = {"after": held.message} if held.message else {}
        request = {"cursor": held.of_records, "max": _MAX_NEW, **after, **(lease or {})}
        reading = scopes.store.call("read_unlearned", conversation, request)
        due_at, *read, unlearned = await scopes.store.client.pipeline(
            [due, *map(scopes.reading, others), reading]
        )
        if not unlearned:
            raise LearnerBusy(conversation.tag)
        answers = zip((*others, conversation), (*read, unlearned[0]), strict=True)
        deltas = {scope: Delta.of(answer) for scope, answer in answers}
        read_scopes = [scopes.join(scope, delta, _MAX_NEW) for scope, delta in deltas.items()]
        if all(each.is_whole for each in read_scopes):
            break
        for each in read_scopes:
            if not each.is_whole:  # it has its first vectors, or it is too long for one page
                await scopes.read(each.scope)
    here = read_scopes[-1]
    _, last, fingerprint, newer = unlearned
    known = [each for each in here.messages.messages[-MAX_SAID:] if each.seq <= held.message]
    messages = [message_of(seq_of(entry), paired(columns)) for entry, columns in newer]
    return Progress(
        here=here,
        facts=read_scopes[0],
        session=deltas[conversation].session,
        now=time(),
        said=() if deltas[conversation].is_off else (*known, *messages),
        embedded=seq_of(last or b"0"),
        fingerprint=fingerprint.decode(),
        due_at=due_at,
    )


async def messages_after(scopes: Scopes, progress: Progress, seq: int, count: int) -> list[Message]:
    """Return the next messages that were said while memory was on, oldest first.

    Those that `progress` has come all at once. Raise `NotWritten` if something was erased since the
    conversation was read, because the scope of a person would accept what rests on erased messages.
    """
    if progress.said and progress.said[0].seq <= seq + 1:
        return [message for message in progress.said if message.seq > seq]
    here = progress.here
    keys = scopes.store.keys.scope(here.scope)
    page = ("XRANGE", keys.log, f"({seq}-0", "+", "COUNT", count)
    # Read after the messages: if memory is on then, it was on when they were said.
    switch = ("HMGET", keys.meta, "epoch", "erasure", "off_at")
    entries, meta = await scopes.store.client.pipeline([page, switch])
    if version_of(meta) != here.version:
        raise NotWritten(here.scope.tag)
    messages = (message_of(seq_of(entry), fields) for entry, fields in entries)
    return [each for each in messages if meta[2] is None or each.seq <= int(meta[2])]


async def progress_after(
    scopes: Scopes, progress: Progress, writes: Mapping[ScopeMemory, Write]
) -> Progress:
    """Write in one round trip, and return the progress as it is then; raise `NotWritten`.

    Only if others have written, too, the conversation is read again. Messages that came meanwhile
    are for the next round.
    """
    if await scopes.write_all(writes):
        return replace(progress, now=time())
    again = await progress_of(scopes, progress.here.scope)
    return replace(again, is_asked_for=progress.is_asked_for)


def learner_in(scope: Scope, behavior: str, here: ScopeMemory) -> str:
    """Name a behavior in a scope; in another scope also the conversation and its generation.

    That scope may outlive the conversation, whose sequences then begin again at 1.
    """
    begun = f"@{here.generation}" if here.generation else ""
    elsewhere = f"@{here.scope.tag}{begun}" if scope != here.scope else ""
    return behavior + elsewhere
