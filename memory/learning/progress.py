"""Where each behavior stands in one conversation: watermark, failures, what is still to be learned.

A value read from the notebooks; it says what to write and writes nothing itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import time

from memory.behaviors.call_context import facts_scope
from memory.behaviors.learning_behavior import Learned, LearningBehavior
from memory.scopes.changes import Write
from memory.scopes.scope_memory import STATE_UNTRUSTED, ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope

_FIRST_PAUSE_S = 60
_LONGEST_PAUSE_S = 86_400


@dataclass(frozen=True, slots=True)
class Ledger:
    """A conversation while it is learned from.

    `here` is its own notebook and `facts` that of the person in private chats, else the same one.
    Messages up to `sitting` belong to sittings ended by `/new`.
    """

    conversation: Scope
    here: ScopeMemory
    facts: ScopeMemory
    session: int
    now: float

    def target(self, behavior: LearningBehavior) -> ScopeMemory:
        """Return the notebook that a behavior writes to."""
        return self.facts if behavior.is_personal else self.here

    def watermark(self, behavior: LearningBehavior) -> int:
        """Return the sequence up to which a behavior has learned."""
        return int(self._stored("w", behavior) or 0)

    def failures(self, behavior: LearningBehavior) -> tuple[int, float]:
        """Return how often its part was bad in a row, and when it may be asked for again."""
        count, _, again_at = self._stored("f", behavior).partition("|")
        return int(count or 0), float(again_at or 0)

    @property
    def digests(self) -> dict[int, str]:
        """What tools did in turns that are not learned yet, by the assistant's message."""
        return {
            int(name.removeprefix("d:")): digest
            for name, digest in self.here.fields.items()
            if name.startswith("d:")
        }

    def after(self, behavior: LearningBehavior, learned: Learned, reach: int, done: int) -> Write:
        """Return what to write when a behavior has learned up to `reach`, and all up to `done`."""
        fields = {
            self._field("w", behavior): (self._stored("w", behavior), str(reach)),
            self._field("f", behavior): (self._stored("f", behavior), ""),
        }
        target = self.target(behavior)
        if learned.state is not None:
            fields["state"] = (target.state, learned.state)
            was = target.fields.get(STATE_UNTRUSTED, "")
            fields[STATE_UNTRUSTED] = (was, "1" if learned.is_untrusted else "")
        if target is self.here:
            gone = {seq: digest for seq, digest in self.digests.items() if seq <= done}
            fields |= {f"d:{seq}": (digest, "") for seq, digest in gone.items()}
        return self._from_here(Write(learned.entries, fields), target)

    def after_failure(self, behavior: LearningBehavior) -> Write:
        """Return what to write when its part was bad: it waits longer each time."""
        count = self.failures(behavior)[0] + 1
        again_at = self.now + min(_FIRST_PAUSE_S * 2 ** (count - 1), _LONGEST_PAUSE_S)
        name, was = self._field("f", behavior), self._stored("f", behavior)
        writing = Write((), {name: (was, f"{count}|{again_at:.0f}")})
        return self._from_here(writing, self.target(behavior))

    def learned_by_all(self, behaviors: Sequence[LearningBehavior], reach: int) -> int:
        """Return up to where `behaviors` and one that has reached `reach` have learned."""
        return min([reach, *map(self.watermark, behaviors)])

    def _field(self, kind: str, behavior: LearningBehavior) -> str:
        scope, generation = self.target(behavior).scope, self.here.generation
        return _field_in(scope, kind, behavior, self.conversation, generation)

    def _stored(self, kind: str, behavior: LearningBehavior) -> str:
        return self.target(behavior).fields.get(self._field(kind, behavior), "")

    def _from_here(self, writing: Write, target: ScopeMemory) -> Write:
        if target.scope == self.conversation:
            return writing
        return replace(writing, learned_from=self.here)


async def ledger_of(scopes: Scopes, conversation: Scope, session: int) -> Ledger:
    """Read where a conversation stands now."""
    here = await scopes.read(conversation)
    scope = facts_scope(conversation)
    facts = here if scope == conversation else await scopes.read(scope)
    return Ledger(conversation, here, facts, session, time())


def watermark_place(
    behavior: LearningBehavior, conversation: Scope, generation: int
) -> tuple[Scope, str]:
    """Return the scope and the field in which a behavior's watermark of a conversation stands."""
    scope = facts_scope(conversation) if behavior.is_personal else conversation
    return scope, _field_in(scope, "w", behavior, conversation, generation)


def _field_in(
    scope: Scope,
    kind: str,
    behavior: LearningBehavior,
    conversation: Scope,
    generation: int,
) -> str:
    """Name a field of a behavior; in another scope's notebook also the conversation and its life.

    For that notebook may outlive it, and then sequences begin anew.
    """
    life = f"@{generation}" if generation else ""
    elsewhere = f"@{conversation.tag}{life}" if scope != conversation else ""
    return f"{kind}:{behavior.name}{elsewhere}"
