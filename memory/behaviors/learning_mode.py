"""How facts are learned: by itself, after a question for each, or only when a person asks for it.

The mode is stored where the facts are: for a person, or for a group.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

from memory.scopes.changes import Revision
from memory.scopes.entries import Ended, Fact, ScopeEntry
from memory.scopes.fact_lists import known_facts
from memory.scopes.fields import UNASKED, Field, WaitingWrite
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import stays
from memory.scopes.writes import Remember
from memory.store.keys import Scope

Mode = Literal["auto", "ask", "explicit"]
_MAX_OPEN = 3
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class LearningMode(Field):
    """How facts of this scope are learned; without the field, by itself ("auto")."""

    PREFIX = "learning_mode"
    mode: Mode

    without = stays

    def _stored(self) -> str:
        return self.mode

    @classmethod
    def _read(cls, _: str, stored: str) -> Self:
        return cls(next((mode for mode in MODES if mode == stored), "explicit"))


def mode_in(facts: ScopeMemory) -> Mode:
    """Return how facts of this scope are learned."""
    found = facts.get(LearningMode)
    return found.mode if found else "auto"


def unasked(entries: Iterable[ScopeEntry]) -> list[ScopeEntry]:
    """Return what may be learned without asking although facts may not: no fact, and no end."""
    return [entry for entry in entries if not isinstance(entry, Fact | Ended)]


def due_cards(here: ScopeMemory, facts: ScopeMemory, sender_id: int, now: float) -> list[Remember]:
    """Return the writes that a person is to be asked about below the next answer, oldest first.

    At most three questions of a conversation are open at a time. Each write names its question by
    the nonce and shows the fact that it replaces.
    """
    if mode_in(facts) != "ask":
        return []
    texts = {fact.id: fact.text for fact in known_facts(facts, here)}
    on_the_way = {write.nonce for write in here.waiting_writes}
    questions = [each for each in here.all(WaitingWrite) if each.expires_at > now]
    is_open = [each for each in questions if not each.answer or each.nonce in on_the_way]
    waiting = sorted(
        (each for each in questions if each.answer == UNASKED and each.nonce not in on_the_way),
        key=lambda each: each.expires_at,
    )
    return [
        replace(each.write, nonce=each.nonce, old_text=texts.get(each.write.replaces, ""))
        for each in waiting
        if isinstance(each.write, Remember) and each.write.sender_id == sender_id
    ][: max(0, _MAX_OPEN - len(is_open))]


class LearningModes:
    """Sets how facts are learned."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes

    async def set_mode(self, conversation: Scope, mode: Mode) -> None:
        """Learn facts so from now on; a repeat changes nothing. Raise `StoreError`.

        A learner that has begun under another mode is refused.
        """
        wanted = Revision(fields=[LearningMode(mode)])
        await self._scopes.update(
            conversation.facts_scope, lambda facts: None if mode_in(facts) == mode else wanted
        )

    async def mode(self, conversation: Scope) -> Mode:
        """Return how facts are learned; raise `StoreError`."""
        return mode_in(await self._scopes.read(conversation.facts_scope))
