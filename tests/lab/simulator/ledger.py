"""What the auditor knows: mail, replies, sent parts, erasures. Plain values."""

from collections import Counter
from dataclasses import dataclass, field

from tests.lab.simulator.store.keyspace import Args
from tests.lab.simulator.store.stream import LEAST, Id


@dataclass(slots=True)
class Mail:
    """One update that was taken in; steps count everything that the server ever did."""

    update_id: int
    tag: str
    sender: int
    sent_at: int
    is_text: bool
    arrived_ms: int
    closed_by: str = ""
    closing: "Closing | None" = None
    """With what a commit closed it."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The outbox of a closed turn: number and parts of its reply, none where it is silent.

    `said` is what the history keeps of it; `failures` is how often the turn had failed.
    """

    reply: int
    of: int
    said: str
    is_notice: bool
    failures: int


@dataclass(slots=True)
class MadeReply:
    """One reply of the model (or a fixed one), made under one version of a conversation."""

    number: int
    turn: str
    tag: str
    version: tuple[str, str]
    updates: tuple[int, ...]
    is_answer: bool


@dataclass(slots=True)
class SentPart:
    """A message that stands in a chat because of a reply."""

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


class Seen:
    """A conversation, its keys, and what was last seen of it in the store."""

    def __init__(self, tag: str, keys: Args) -> None:
        self.tag = tag
        self.lease, self.mailbox, self.log, self.vectors = keys[1], keys[3], keys[5], keys[6]
        self.waiting: frozenset[int] = frozenset()
        self.logged: frozenset[int] = frozenset()
        self.last: Id = LEAST
        self.looked_at: object = None
        """History and vectors, each with its number of changes."""


@dataclass(slots=True)
class Ledger:
    """All that happened in a schedule."""

    mail: dict[int, Mail] = field(default_factory=dict)
    replies: dict[int, MadeReply] = field(default_factory=dict)
    parts: list[SentPart] = field(default_factory=list)
    erased: dict[int, int] = field(default_factory=dict)
    """Updates that must not be seen again, and the step of their erasure."""
    dropped: set[int] = field(default_factory=set)
    """Updates that were not taken in."""
    forgotten: dict[int, int] = field(default_factory=dict)
    """Persons, and the newest update that a receipt of their forgetting covers."""
    cleared: dict[str, int] = field(default_factory=dict)
    """Conversations, and the newest update that confirmed a clear."""
    marked: dict[str, int] = field(default_factory=dict)
    """Leases, and the step at which one was last allowed to send."""
    begun: dict[tuple[str, str], int] = field(default_factory=dict)
    """Leases and turns, and the step at which a turn was last begun under a lease."""
    opened: set[tuple[str, str]] = field(default_factory=set)
    """Conversations and turns that were ever begun."""
    written: dict[tuple[str, str, tuple[str, str]], int] = field(default_factory=dict)
    """Turns (tag, turn, version) whose reply is durable, and since when."""
    troubled: set[tuple[int, int]] = field(default_factory=set)
    """Replies and parts that need not stand: unanswered ones, and all from a refused one on."""
    undeliverable: set[int] = field(default_factory=set)
    """Replies of which Telegram refused a part."""
    seen: dict[str, Seen] = field(default_factory=dict)
    receipts: dict[bytes, object] = field(default_factory=dict)
    """Confirmations that were carried out, with their receipts."""
    unanswered: set[str] = field(default_factory=set)
    """Leases of whose holders the store did not tell one whether the part just sent counts."""
    running: int = 0
    """Turns that somebody works on, be it to take back what was sent in vain."""
    counts: Counter[str] = field(default_factory=Counter)
