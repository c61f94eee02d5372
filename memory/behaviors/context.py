"""`AgentContext`: what one run of the agent works with, for one conversation.

Only the history is stored. All other fields live as long as the run.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any, TypeVar

from memory.behaviors.steps import CompletedStep, ToolQuestion
from memory.behaviors.tool_output import OutgoingFile
from memory.message import NOTHING_SAID, Message, Picture, RepliedTo
from memory.scopes.history import ChatHistory, Histories
from memory.scopes.writes import ToolWrite
from memory.search.message_search import SearchResult
from memory.store.keys import Scope
from memory.text.message_lines import Speakers
from memory.work.item import WorkChanges

P = TypeVar("P")
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
    # What is written after the reply was sent; None once that has happened.
    writes: list[ToolWrite] | None = field(default=None, compare=False, repr=False)
    used: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    # What this turn searches for: before a short question stands the person's message before it.
    query: str = field(default="", compare=False, repr=False)
    # Of days and times: that of a private chat's person if it is known, or the operator's.
    zone: tzinfo = field(default=UTC, compare=False, repr=False)

    def question(self, new_messages: Sequence[Message]) -> str:
        """Return what to search for in a turn with these messages."""
        return self.query or "\n".join(message.text for message in new_messages)


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


@dataclass(frozen=True, slots=True)
class Background:
    """What the prompt may show beside the new message and the steps."""

    window: tuple[Message, ...] = ()
    recalled: tuple[SearchResult, ...] = ()
    memory_context: str = ""  # the texts of the behaviors
    replies: tuple[RepliedTo, ...] = ()  # what the new message replies to

    def recalled_messages(self) -> Iterator[Message]:
        """Yield the messages that were recalled, some twice."""
        for found in self.recalled:
            yield from found.messages

    def replied_to(self) -> Iterator[Message]:
        """Yield what the new message replies to, each after the question that it answered."""
        for reply in self.replies:
            if reply.question:
                yield reply.question
            yield reply.message


@dataclass(slots=True)
class AgentContext:
    """The history, this turn's message, what goes into the prompt, and the steps so far."""

    call_context: CallContext
    chat_history: ChatHistory
    user_message: Message = NOTHING_SAID  # the one that is answered, not in the history yet
    user_messages: tuple[Message, ...] = ()  # its parts: the person's own words, and forwarded ones
    background: Background = Background()
    uses_memory: bool = True  # off the record it does not: tools that use the memory refuse to run
    speakers: Speakers | None = None  # the people of a group
    # The first step is the one that the person agreed to, if there is one.
    completed_steps: list[CompletedStep] = field(default_factory=list)
    writes: list[ToolWrite] = field(default_factory=list)  # what tools want written after the reply
    work: WorkChanges = field(default_factory=WorkChanges)
    used: tuple[str, ...] = ()  # codes of the memories whose text stood in the newest prompt
    sizes: Mapping[str, int] = field(default_factory=dict)  # tokens of the parts of that prompt
    pictures: tuple[Picture, ...] = ()  # came with the message
    is_blind: bool = False  # the model could not see them
    are_pictures_refused: bool = False  # its server refused them, and they were removed
    tool_question: ToolQuestion | None = None  # ends the run: its person has to agree first
    is_agreed: bool = False  # while the tool runs that the person agreed to
    files: list[OutgoingFile] = field(default_factory=list)  # of tools, sent with the answer
    parts: dict[type[Any], Any] = field(default_factory=dict)  # of features, see `part`

    @classmethod
    async def get_or_create(
        cls, context_keys: Mapping[str, object], histories: Histories, *, now: float
    ) -> "AgentContext":
        """Return the context of these keys, in any order; a new conversation is empty."""
        history = await ChatHistory.read(histories, Scope.of_keys(context_keys))
        return cls(CallContext(history.conversation, Person(), now, zone=history.zone), history)

    def part(self, kind: type[P]) -> P:
        """Return what a feature notes of this run, in a class of its own; empty at first."""
        part: P = self.parts.setdefault(kind, kind())
        return part

    @property
    def conversation(self) -> Scope:
        """Where the run takes place."""
        return self.call_context.conversation

    @property
    def now(self) -> float:
        """When it began (Unix seconds)."""
        return self.call_context.now
