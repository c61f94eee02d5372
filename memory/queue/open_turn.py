"""The values of a turn: its lease, what was loaded with it, how it ends, and why there is none.

A stored message or reply has a format, so that processes of two releases can run at once. Format 1
begins with its JSON; a later one has its number before it. A release that writes what the one
before cannot read raises `FORMAT`. Then older workers give such turns back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any, Literal

import orjson

from memory.message import Message
from memory.queue.mailbox import Entry
from memory.scopes.history import ChatHistory, Histories
from memory.scopes.log import Delta, message_of, paired, seq_of
from memory.scopes.scope_memory import ScopeMemory
from memory.store.commands import Reply
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.store.store import Store

FORMAT = 1  # the newest format that this release reads, and the one that it writes
_NUMBER = re.compile(rb"[1-9][0-9]{0,3}(?=\[)")


class NewerValue(ValueError):
    """Raised when a newer release has stored a value that this one cannot read."""


def stamped(value: bytes) -> bytes:
    """Return a value, which begins with a JSON array, as it is stored."""
    return value if FORMAT == 1 else b"%d%b" % (FORMAT, value)


def unstamped(stored: bytes) -> bytes:
    """Return the value without its format; raise `NewerValue` if this release cannot read it."""
    number = _NUMBER.match(stored)
    if number is None:
        return stored
    if int(number[0]) > FORMAT:
        raise NewerValue
    return stored[number.end() :]


class Superseded(LeaseLost):
    """Raised when a step was refused but the last part we sent must stay.

    The current owner counts it as sent, or we cannot tell: our own step may have been carried out,
    and only its answer was lost.
    """


class QuestionErased(LeaseLost):
    """Raised when a step was refused because the question of the turn was erased.

    No worker goes on with the turn, so a former reply that it has edited must be deleted, too.
    """


class Interrupted(Exception):
    """Raised when a run has to end although its lease is held.

    `why` is "again" if the turn begins again, because further messages belong to it. It is
    "stopped" if the person wants no more of the reply.
    """

    def __init__(self, why: Literal["again", "stopped"]) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True, eq=False)
class Run:
    """How far one run of a turn has come. Code that may end the run looks here first."""

    shown: str | None = None  # of the reply so far; "" for a line that says what the tools do
    # Set before `commit` or `park` is sent: then only its answer says whether the turn was ours.
    is_giving_back: bool = False
    is_ending: bool = False  # it is about to be cancelled, so it shows nothing more
    heard: tuple[tuple[int, str], ...] = ()  # words of voice messages, by the id of the message
    seen: tuple[tuple[int, str], ...] = ()  # what photos show
    before: str = ""  # Markdown that is shown above the reply, such as a quote of these words
    media_notes: tuple[str, ...] = ()  # shown below it: why a photo could not be seen
    ends_at: float = 0.0  # when its slow steps have to be over (event loop); 0 before the first
    renewed_at: float = float("-inf")  # when its lease was extended last, in the same time


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a conversation, under the versions that its holder loaded."""

    conversation: Scope
    token: str
    epoch: str
    erasure: str

    @property
    def named(self) -> dict[str, object]:
        """Return the fields by which a step names its lease and these versions."""
        return {"token": self.token, "epoch": self.epoch, "erasure": self.erasure}

    def check(self, answer: bytes) -> None:
        """Return if a step was carried out; raise an error of this file, or `LeaseLost`."""
        if answer == b"ok":
            return
        if answer in (b"again", b"stopped"):
            raise Interrupted("again" if answer == b"again" else "stopped")
        refusals = {b"superseded": Superseded, b"erased": QuestionErased}
        raise refusals.get(answer, LeaseLost)(self.conversation.tag)


@dataclass(frozen=True, slots=True)
class OffRecord:
    """A session off the record: no memory is read or written, and its words are erased at the end.

    Its messages are in a stream of their own, which Redis deletes when the time is over, even if no
    process runs. Nothing that learns, searches or exports knows this stream. The times stay stored,
    because messages of the session may be answered later.
    """

    since: float  # Unix seconds
    until: float  # it ends before this time
    said: tuple[Message, ...] = ()  # its newest messages

    def covers(self, at: float) -> bool:
        """Return whether a message of this time belongs to the session."""
        return self.since <= at < self.until

    def history(self, histories: Histories, conversation: Scope) -> ChatHistory:
        """Return the session as the whole history of its conversation; nothing may be written."""
        here = ScopeMemory(conversation)
        here.messages.append(self.said)
        here.messages.length, here.messages.vectors_length = len(self.said), 0
        return ChatHistory(histories, here, here.messages)


async def is_off_record(store: Store, conversation: Scope) -> bool:
    """Return whether a session is open now; raise `StoreError`."""
    [found] = await store.read_meta(conversation, "off_record")
    return found is not None and int(found.split(b"|")[1]) > time() * 1000


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that this worker has to finish.

    If `outbox` is not empty, an earlier worker wrote the reply. Then the parts before `sending`
    were sent, as the message ids `sent`, and the part at `sending` may have been sent.
    """

    lease: Lease
    id: str
    attempts: int  # how often it was begun
    outbox: bytes
    sending: int
    sent: tuple[int, ...]
    failures: int  # errors
    error: str  # the class of the last one, "" without one
    entries: tuple[Entry, ...]
    loaded: Delta
    facts: Delta | None = None  # of the person's own scope, unless a commit began the turn
    is_stopped: bool = False  # the person wants no reply any more
    off_record: OffRecord | None = None  # the latest session off the record here
    run: Run = field(default_factory=Run, repr=False, compare=False)

    @property
    def stored_format(self) -> int:
        """The newest format of its messages and its reply."""
        stored = (self.outbox, *(entry.body for entry in self.entries))
        return max(int(number[0]) if (number := _NUMBER.match(each)) else 1 for each in stored)


@dataclass(frozen=True, slots=True)
class NoTurn:
    """There is no turn now."""

    why: str  # held, empty, parked, deferred, moved, failed, or lost: the token is not valid now
    wake_up: str = ""  # if it is held: the delivery that the holder of the lease serves
    wait_ms: int = field(default=0, compare=False)  # if it is parked: the turn is due then


@dataclass(frozen=True, slots=True)
class Committed:
    """A closed turn: the numbers of its exchange and first message, and what comes next."""

    exchange: int
    first_seq: int
    then: OpenTurn | NoTurn
    messages: Sequence[Message] = ()  # as they were given to the commit


@dataclass(frozen=True, slots=True)
class Closing:
    """What a commit writes besides the messages."""

    ends_session: bool = False  # before the messages; off the record this erases its words
    digest: str = ""  # a summary of the tool steps, for learning
    writes: str = ""  # what tools want written, as JSON
    work: str = ""  # what tools add and cancel (`WorkChanges`)
    uses_memory: bool = True  # if not, messages are kept until the session off the record ends

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a commit's request, without those that have their default."""
        fields = {
            "ends_session": self.ends_session,
            "is_off_record": not self.uses_memory,
            "digest": self.digest,
            "work": self.work and orjson.loads(self.work),
        }
        return {name: value for name, value in fields.items() if value}


def begun_turn(conversation: Scope, answer: Sequence[Reply], asked_at: float) -> OpenTurn | NoTurn:
    """Read the answer of `begin`; `asked_at` (event loop) is when its call was sent."""
    head = orjson.loads(answer[0])
    if head["outcome"] != "turn":
        return NoTurn(head["outcome"], head.get("wake_up", ""), head.get("wait_ms", 0))
    outbox, entries, loaded, said = answer[1:]
    delta = Delta.of(loaded)
    off_record = None
    if "off_record" in head:
        messages = (message_of(seq_of(entry), paired(fields)) for entry, fields in said)
        since, until = head["off_record"]
        off_record = OffRecord(since / 1000, until / 1000, tuple(messages))
    return OpenTurn(
        lease=Lease(conversation, head["token"], *delta.version),
        id=head["id"],
        attempts=head["attempts"],
        outbox=outbox,
        sending=head.get("sending", 0),
        sent=tuple(int(part) for part in head.get("sent", "").split(",") if part),
        failures=head.get("failures", 0),
        error=head.get("error", ""),
        entries=tuple(map(Entry.of_member, entries)),
        loaded=delta,
        is_stopped="stopped" in head,
        off_record=off_record,
        run=Run(renewed_at=asked_at),
    )
