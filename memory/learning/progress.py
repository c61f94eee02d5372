"""How far each behavior has learned from a conversation: watermarks, failures, digests.

A value that is read from the scopes. It says what to write and writes nothing itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import time

from memory.behaviors.behavior_store import BehaviorState
from memory.behaviors.learning_behavior import Learned, LearningBehavior
from memory.scopes.changes import Write
from memory.scopes.field import Field
from memory.scopes.fields import (
    STATE_LEARNER,
    Digest,
    Failures,
    State,
    StateUntrusted,
    Watermark,
)
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope

_FIRST_PAUSE_S = 60
_MAX_PAUSE_S = 86_400


@dataclass(frozen=True, slots=True)
class Progress:
    """A conversation while behaviors learn from it.

    `here`: its scope memory. `facts`: in private chats that of the person, else the same object.
    `session`: messages up to this sequence belong to sessions that `/new` ended. `now`: Unix
    seconds.
    """

    conversation: Scope
    here: ScopeMemory
    facts: ScopeMemory
    session: int
    now: float

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
        return self.target(behavior).get(BehaviorState, behavior.name) or BehaviorState(
            behavior.name, ""
        )

    @property
    def digests(self) -> dict[int, str]:
        """What tools did in turns that are not learned yet, by the sequence of the answer."""
        return {digest.seq: digest.text for digest in self.here.all(Digest)}

    def after(
        self, behavior: LearningBehavior, learned: Learned, learned_up_to: int, by_all: int
    ) -> Write:
        """Return what to write after a behavior has learned.

        `learned_up_to`: the new watermark. `by_all`: digests up to this sequence go.
        """
        learner, target = self._learner(behavior), self.target(behavior)
        fields: list[Field] = [Watermark(learner, learned_up_to), Failures(learner)]
        if learned.state is not None and behavior.name == STATE_LEARNER:
            fields += (State(learned.state), StateUntrusted(learned.is_untrusted))
        elif learned.state is not None:
            is_untrusted = learned.is_untrusted
            last = learned_up_to if target is self.here else 0
            state = BehaviorState(behavior.name, learned.state, last, is_untrusted)
            fields.append(state)
        removed = [each.name for each in self.here.all(Digest) if each.seq <= by_all]
        write = Write(learned.entries, fields, removed if target is self.here else ())
        return self._from_here(write, target)

    def after_failure(self, behavior: LearningBehavior, told: str = "") -> Write:
        """Return what to write after a bad part; each one doubles the wait.

        `told` is what the model is told when it is asked again.
        """
        failures = self.failures(behavior)
        pause_s = min(_FIRST_PAUSE_S * 2**failures.count, _MAX_PAUSE_S)
        more = replace(failures, count=failures.count + 1, again_at=self.now + pause_s, told=told)
        return self._from_here(Write(fields=[more]), self.target(behavior))

    def learned_by_all(self, behaviors: Sequence[LearningBehavior], learned_up_to: int) -> int:
        """Return up to which message `behaviors` and one with this watermark have learned."""
        return min([learned_up_to, *map(self.watermark, behaviors)])

    def _learner(self, behavior: LearningBehavior) -> str:
        scope, generation = self.target(behavior).scope, self.here.generation
        return _learner_in(scope, behavior, self.conversation, generation)

    def _from_here(self, writing: Write, target: ScopeMemory) -> Write:
        if target.scope == self.conversation:
            return writing
        return replace(writing, learned_from=self.here)


async def progress_of(scopes: Scopes, conversation: Scope, session: int) -> Progress:
    """Read the present progress of a conversation."""
    here = await scopes.read(conversation)
    scope = conversation.facts_scope
    facts = here if scope == conversation else await scopes.read(scope)
    return Progress(conversation, here, facts, session, time())


def watermark_place(
    behavior: LearningBehavior, conversation: Scope, generation: int
) -> tuple[Scope, str]:
    """Return the scope and the learner of a behavior's watermark of a conversation."""
    scope = conversation.facts_scope if behavior.is_personal else conversation
    return scope, _learner_in(scope, behavior, conversation, generation)


def awaited_watermark(
    behavior: LearningBehavior, conversation: Scope, generation: int
) -> tuple[Scope, str] | None:
    """Return the same, or None if the behavior does not run in the conversation."""
    is_here = behavior.reach.covers(conversation)
    return watermark_place(behavior, conversation, generation) if is_here else None


def _learner_in(
    scope: Scope, behavior: LearningBehavior, conversation: Scope, generation: int
) -> str:
    """Name a behavior in a scope; in another scope also the conversation and its generation.

    That scope may outlive the conversation, whose sequences then begin again at 1.
    """
    begun = f"@{generation}" if generation else ""
    elsewhere = f"@{conversation.tag}{begun}" if scope != conversation else ""
    return behavior.name + elsewhere
