"""Whom a turn is about: plain values that hooks and tools get with every call."""

from dataclasses import dataclass, field

from memory.erasure.ownership import IsAdmin, nobody
from memory.scopes.writes import ToolWrite
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class Person:
    """Who is being talked with, as Telegram knows them; `id` 0 is nobody in particular."""

    id: int = 0
    first_name: str = ""
    last_name: str = ""
    language: str = "en"


@dataclass(frozen=True, slots=True)
class CallContext:
    """Whom a call is about: the conversation, who speaks, and when (Unix seconds).

    `is_admin` asks whether the speaker administers the group; only `memory.ownership` calls it.
    `writes` is what is to be written once the reply is sent; None where that has happened.
    """

    conversation: Scope
    speaker: Person
    now: float
    is_admin: IsAdmin = field(default=nobody, compare=False, repr=False)
    writes: list[ToolWrite] | None = field(default=None, compare=False, repr=False)

    @property
    def facts_scope(self) -> Scope:
        """Where facts belong."""
        return facts_scope(self.conversation)


def facts_scope(conversation: Scope) -> Scope:
    """Return where facts of a conversation belong: the person in private chats, else the group."""
    if conversation.is_private:
        return Scope.of_person(conversation.chat_id)
    return conversation
