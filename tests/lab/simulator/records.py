"""What the auditor has recorded: updates, replies, sent parts, erasures. Plain values."""

from collections import Counter
from dataclasses import dataclass, field

from memory.store.keys import ScopeKeys
from tests.lab.simulator.store.streams import MIN_ID, Id


@dataclass(slots=True)
class AcceptedUpdate:
    """One update that intake accepted."""

    update_id: int
    tag: str
    sender: int
    sent_at: int
    is_text: bool
    arrived_ms: int
    may_be_silent: bool
    words: frozenset[int]
    """The updates whose texts its turn brings into the history; they change with edits.
    For a task they are those that asked for it."""
    closed_by: str = ""
    closing: "Closing | None" = None
    """The outbox with which a commit closed it."""
    is_answered_again: bool = False
    """Whether a later update took its exchange out of the history."""
    replaces: tuple[int, ...] = ()
    """The messages in the chat that its reply replaces."""

    @property
    def asks(self) -> frozenset[int]:
        """What a reply to it answers: its words as they are now.

        Its own number alone is that of its first words, which an edit may have replaced.
        """
        return (self.words if self.update_id > 0 else frozenset()) or frozenset({self.update_id})

    @property
    def marks(self) -> frozenset[int]:
        """All updates that must not be seen again once this one is erased.

        A task says only what is in the history; an erasure may end its turn before it gets there.
        """
        return self.asks | {self.update_id}


@dataclass(frozen=True, slots=True)
class Closing:
    """The outbox of a closed turn: the number of its reply, and how many parts that has.

    A silent turn has 0 parts. `said` is the answer's text in the history; `failures` is how often
    the turn had failed.
    """

    reply: int
    of: int
    said: str
    is_notice: bool
    failures: int


@dataclass(slots=True)
class MadeReply:
    """A reply of the model, or a fixed one, made under one version of a conversation."""

    number: int
    turn: str
    tag: str
    version: tuple[str, str]
    updates: tuple[int, ...]
    answered: frozenset[int]
    """What it answers, as `AcceptedUpdate.asks` says."""
    is_answer: bool
    was_set_aside: bool = False
    """Whether its turn was set aside, and then tried again."""


@dataclass(slots=True)
class SentPart:
    """A message of a reply that has appeared in a chat; `sent_at` is the server's step then."""

    message_id: int
    reply: int
    part: int
    of: int
    token: str
    sender: str
    sent_at: int
    mentioned: frozenset[int]
    is_answered: bool
    is_deleted: bool = False


class SeenConversation:
    """A conversation, its keys, and its state in the store when it was last checked."""

    def __init__(self, tag: str, keys: ScopeKeys) -> None:
        self.tag = tag
        self.lease, self.mailbox = keys.lease.encode(), keys.mailbox.encode()
        self.turn = keys.turn.encode()
        self.log, self.vectors = keys.log.encode(), keys.vectors.encode()
        self.waiting: frozenset[int] = frozenset()
        self.logged: frozenset[int] = frozenset()
        self.last: Id = MIN_ID
        self.checked: object = None
        """The history and the vectors that were checked, each with its number of changes."""


@dataclass(slots=True)
class ReminderRecords:
    """What happened to reminders, by their ids; a delivery is known by its token."""

    asked: dict[str, str] = field(default_factory=dict)
    """The texts of reminders that were set."""
    delivered: dict[str, str] = field(default_factory=dict)
    """Deliveries, with the reminder that each has taken."""
    marked: dict[str, int] = field(default_factory=dict)
    """Deliveries, with the step at which each was last allowed to send."""
    sent: dict[str, list[str]] = field(default_factory=dict)
    """The deliveries of a reminder's messages."""
    ended: dict[str, int] = field(default_factory=dict)
    """Deliveries that ended without an error, with the step of their end."""
    troubled: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Records:
    """Everything that happened in a schedule; a step is the count of what the server did."""

    updates: dict[int, AcceptedUpdate] = field(default_factory=dict)
    replies: dict[int, MadeReply] = field(default_factory=dict)
    parts: list[SentPart] = field(default_factory=list)
    erased: dict[int, int] = field(default_factory=dict)
    """Updates that must not be seen again, with the step of their erasure."""
    stopped: set[int] = field(default_factory=set)
    """Updates whose turn was stopped before its reply was stored."""
    edits: set[int] = field(default_factory=set)
    """Edits that have changed a waiting message."""
    asked_again: set[int] = field(default_factory=set)
    """Updates whose words were taken out of the history to be answered again."""
    dropped: set[int] = field(default_factory=set)
    """Updates that intake dropped because an erasure covers them."""
    forgotten: dict[int, int] = field(default_factory=dict)
    """Persons, with the newest update that a receipt of their forgetting covers."""
    cleared: dict[str, int] = field(default_factory=dict)
    """Conversations, with the newest update that confirmed a clear."""
    marked: dict[str, int] = field(default_factory=dict)
    """Leases, with the step at which the lease was last allowed to send."""
    begun: dict[tuple[str, str], int] = field(default_factory=dict)
    """Leases and turns, with the step at which the turn last began under the lease."""
    taken: dict[str, list[int]] = field(default_factory=dict)
    """Conversations, with the updates of the turn that began last."""
    written: dict[tuple[str, str, tuple[str, str]], int] = field(default_factory=dict)
    """Turns (tag, turn, version) whose reply is durable, with the step since when."""
    troubled: set[tuple[int, int]] = field(default_factory=set)
    """Replies and parts that may be missing: Telegram did not answer, or refused this or an earlier
    part."""
    undeliverable: set[int] = field(default_factory=set)
    """Replies with a part that Telegram refused."""
    conversations: dict[str, SeenConversation] = field(default_factory=dict)
    receipts: dict[str, object] = field(default_factory=dict)
    """Confirmed erasures, with their receipts."""
    unanswered: set[str] = field(default_factory=set)
    """Leases whose holder got no answer from the store whether the part just sent counts."""
    running: int = 0
    """Turns that a worker works on, also those whose sent parts it only deletes."""
    reminders: ReminderRecords = field(default_factory=ReminderRecords)
    counts: Counter[str] = field(default_factory=Counter)
