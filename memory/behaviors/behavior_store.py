"""`BehaviorStore`: short texts that an operator's own behavior stores about a conversation.

It also sets the operator's own fields of the running state.

A text rests on the message of the turn that stored it. It is erased with that message: by `/clear`,
by `/forget`, or when the message alone is forgotten. `/export` contains all of them. Nothing is
stored while memory is off, or by a turn without an answer.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Self

import orjson

from memory.behaviors.context import CallContext
from memory.behaviors.knowledge_base import DomainRefused, KnowledgeBase, merged_domain
from memory.behaviors.tool import ToolError
from memory.scopes.fields import Field, erased_with_message
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Erased
from memory.scopes.writes import Keep, SetDomain

MAX_ENTRIES = 100
MAX_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Kept(Field):
    """A text that an operator's behavior keeps under a name; `seq` is the message it rests on."""

    PREFIX = "kept"
    KEY = "place"
    behavior: str
    label: str
    seq: int
    text: str

    without = erased_with_message

    @property
    def place(self) -> str:
        """The behavior, and its name for the text."""
        return f"{self.behavior}:{self.label}"

    @property
    def stored(self) -> str:
        """The message and the text; "" without a text."""
        return f"{self.seq}|{self.text}" if self.text else ""

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read a stored value."""
        behavior, _, label = key.partition(":")
        seq, _, text = stored.partition("|")
        return cls(behavior, label, int(seq), text)


@dataclass(frozen=True, slots=True)
class BehaviorState(Field):
    """The state of an operator's learning behavior, in any form."""

    PREFIX = "behavior_state"
    KEY = "behavior"
    NEEDS = "text"
    behavior: str
    # It may rest on every message up to this; 0 in a person's scope, where every erasure takes it.
    last_seq: int = 0
    is_untrusted: bool = False  # untrusted text has ever gone into it
    text: str = ""

    def without(self, erased: Erased) -> Self | None:
        """Keep the state if all erased messages are newer, or those of another conversation."""
        are_newer = not erased.takes_any_of(1, self.last_seq)
        is_of_messages = bool(erased.seqs) and not erased.sender_id
        stays = are_newer and is_of_messages if erased.is_here else True
        return self if self.last_seq and stays else None


class CannotStore(ToolError):
    """Raised if a text is too long, if there are too many, or if the turn was answered already.

    Also raised for fields of the running state that cannot be kept. The text says why, so that the
    model can do better; it quotes nothing.
    """


@dataclass(frozen=True, slots=True, eq=False)
class BehaviorStore:
    """The texts of one behavior, by name; behaviors do not see those of others.

    `knowledge_base` is the model of the running state, None if no running state is kept.
    `is_personal` is that of the behavior: its state stands where its entries stand.
    """

    scopes: Scopes
    behavior: str
    knowledge_base: type[KnowledgeBase] | None = None
    _: KW_ONLY
    is_personal: bool = False

    async def read(self, call_context: CallContext) -> dict[str, str]:
        """Return the texts of this conversation by name, those that this turn stores included."""
        here = await self.scopes.current(call_context.conversation)
        found = stored_by_behaviors(here).get(self.behavior, {})
        for write in (*here.waiting_writes, *(call_context.writes or ())):
            if isinstance(write, Keep) and write.behavior == self.behavior:
                found.pop(write.name, None)
                if write.text:
                    found[write.name] = write.text
        return found

    async def state(self, call_context: CallContext) -> BehaviorState | None:
        """Return what the behavior learned last as its state (`LearningBehavior`), or None.

        Text of a hook that shows a state with `is_untrusted` must contain `UNTRUSTED_MARK`.
        """
        if self.is_personal:  # a turn reads the person's scope only if somebody asks for it
            here = await self.scopes.read(call_context.conversation.facts_scope)
        else:
            here = await self.scopes.current(call_context.conversation)
        return here.get(BehaviorState, self.behavior)

    async def keep(self, call_context: CallContext, name: str, text: str) -> None:
        """Store a text under a name in place of an older one; "" removes it.

        Only for tools and hooks before the answer; later ones get `CannotStore`, as for its bounds.
        """
        if call_context.writes is None:
            raise CannotStore("the turn has its answer already")
        stored = await self.read(call_context)
        if len(name) + len(text) > MAX_CHARS:
            raise CannotStore(f"more than {MAX_CHARS} characters")
        if text and name not in stored and len(stored) >= MAX_ENTRIES:
            raise CannotStore(f"more than {MAX_ENTRIES} entries")
        call_context.writes.append(Keep(self.behavior, name, text))

    async def set_domain(self, call_context: CallContext, fields: Mapping[str, object]) -> None:
        """Set fields of a `knowledge_base` in the running state; None clears a field.

        Required fields may be set one after the other. Raise `CannotStore` if the fields do not fit
        the model or are too large together; then none of them is set. May be called as `keep`.
        """
        if call_context.writes is None:
            raise CannotStore("the turn has its answer already")
        if self.knowledge_base is None:
            raise CannotStore("no running state is kept here")
        here = await self.scopes.current(call_context.conversation)
        wanted = SetDomain(orjson.dumps(fields).decode())
        state = here.state
        try:
            for write in (*here.waiting_writes, *call_context.writes, wanted):
                if isinstance(write, SetDomain) and not write.asks_first:
                    state = merged_domain(self.knowledge_base, state, write.fields)
        except DomainRefused as error:
            raise CannotStore(str(error)) from error
        call_context.writes.append(wanted)


def stored_by_behaviors(here: ScopeMemory) -> dict[str, dict[str, str]]:
    """Return the texts of all behaviors about a conversation, by behavior and name."""
    kept: dict[str, dict[str, str]] = {}
    for each in here.all(Kept):
        kept.setdefault(each.behavior, {})[each.label] = each.text
    return kept
