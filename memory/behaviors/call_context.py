"""Who, where and when of a call: the values that hooks and tools get, and who may change what.

The rule of `may_change` is the only one: tools, buttons, commands and files all follow it. In a
private chat everything belongs to the person. In a group people may change what rests on their own
messages alone, and administrators may change everything.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from memory.message import Message
from memory.scopes.writes import ToolWrite
from memory.store.keys import Scope

IsAdmin = Callable[[], Awaitable[bool]]
"""Asks whether a person administers the group; called only if the answer depends on it."""


async def not_an_admin() -> bool:
    """Answer that the person is not an administrator."""
    return False


@dataclass(frozen=True, slots=True)
class Person:
    """The person who speaks, as Telegram describes them; id 0 stands for no single person."""

    id: int = 0
    first_name: str = ""
    last_name: str = ""
    language: str = "en"


@dataclass(frozen=True, slots=True)
class CallContext:
    """The conversation of a call, the person who speaks, and the time (Unix seconds).

    `is_admin` asks whether the speaker administers the group; only `may_change` calls it. `writes`
    collects what is written after the reply was sent. It is None once that has happened. `asked` is
    what this turn searches for: a short question stands there with the person's message before it.

    `used` collects the memories that are shown to the model: a code, and the text that shows it, ""
    if a tool does. Of one kind the most relevant come first. The codes are `f<id>` for a fact,
    `s<id>` for a synopsis, `d<key>` for a document, `o<key>@<scope>` for one of the operator, `x`
    for the running state, `m<sequence>` for a message that was found by its words, `m<sequence>~`
    for one found by its meaning, and `t<sequence>@<topic id>` for one of another topic.
    """

    conversation: Scope
    speaker: Person
    now: float
    is_admin: IsAdmin = field(default=not_an_admin, compare=False, repr=False)
    writes: list[ToolWrite] | None = field(default=None, compare=False, repr=False)
    used: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    asked: str = field(default="", compare=False, repr=False)

    def question(self, new_messages: Sequence[Message]) -> str:
        """Return what to search for in a turn with these messages."""
        return self.asked or "\n".join(message.text for message in new_messages)

    @property
    def facts_scope(self) -> Scope:
        """The scope in which facts are stored."""
        return self.conversation.facts_scope


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who wants something changed, and whether this happens in a group."""

    sender_id: int
    is_group: bool
    is_admin: IsAdmin = not_an_admin


def is_first_party(sender_id: int, senders: Iterable[int]) -> bool:
    """Return whether `senders`, whose messages a memory rests on, are this one person."""
    return sender_id != 0 and set(senders) == {sender_id}


async def may_change(asker: Asker, senders: Iterable[int] = ()) -> bool:
    """Return whether a person may change, erase or download a memory.

    `senders` wrote the messages that it rests on. Leave it empty for what rests on the messages of
    everybody: a summary, a switch, the whole conversation.
    """
    return not asker.is_group or is_first_party(asker.sender_id, senders) or await asker.is_admin()
