"""The life of a turn in Redis: acquire, outbox, sending, commit; each step atomic and fenced.

Every step names the lease and the versions it was loaded under; a refused holder drops the turn
and never acknowledges it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex
from time import time

from memory.behaviors.call_context import facts_scope
from memory.limits.usage import UsageStore
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.scopes.log import arguments_of, message_of, paired, seq_of
from memory.store.client import Arg, Command, Reply, ScriptCall
from memory.store.keys import Scope
from memory.store.store import Store


class LeaseLost(Exception):  # noqa: N818 - says when
    """Raised when a step was refused: the lease went to somebody else, or something was erased."""


class Superseded(LeaseLost):
    """Raised when, beside, the part just sent stands, or may, for whoever goes on or has closed.

    Our own step may have been carried out, and its answer lost.
    """


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may write, and under which versions the conversation was loaded."""

    conversation: Scope
    token: str
    epoch: str
    erasure: str

    @property
    def version(self) -> tuple[str, str]:
        """Return the versions under which a warm cache is valid."""
        return self.epoch, self.erasure


@dataclass(frozen=True, slots=True)
class Notes:
    """What was learned of a scope, as far as the caller did not know it.

    `fields` holds state, watermarks and what waits to be learned. `entries` are (id, kind, JSON),
    ascending; `length` and `vectors_length` count all that is stored. `born` is when the first
    message of a conversation was sent (Unix ms), 0 before that.
    """

    fields: Mapping[str, str]
    entries: tuple[tuple[int, str, bytes], ...]
    length: int
    vector_fingerprint: str
    vectors: tuple[tuple[int, bytes], ...]
    vectors_length: int
    generation: int = 0

    @classmethod
    def of(cls, answer: Sequence[Reply]) -> "Notes":
        """Read a script's answer."""
        fields, entries, length, fingerprint, vectors, vectors_length, generation = answer
        return cls(
            fields={name.decode(): value.decode() for name, value in paired(fields).items()},
            entries=tuple(
                (seq_of(entry), columns[b"k"].decode(), columns[b"j"])
                for entry, columns in ((entry, paired(flat)) for entry, flat in entries)
            ),
            length=int(length),
            vector_fingerprint=fingerprint.decode(),
            vectors=tuple((seq_of(entry), paired(fields)[b"v"]) for entry, fields in vectors),
            vectors_length=int(vectors_length),
            generation=int(generation),
        )


@dataclass(frozen=True, slots=True)
class ScopeNotes:
    """What was learned of another scope than the turn's, and the versions it was read under."""

    version: tuple[str, str]
    notes: Notes

    @classmethod
    def of(cls, answer: Sequence[Reply]) -> "ScopeNotes":
        """Read a script's answer."""
        epoch, erasure, *notes = answer
        return cls((epoch.decode(), erasure.decode()), Notes.of(notes))


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read along with a turn: what is newer than the caller knew.

    `messages` are the newest of the log, oldest first, at most as many as asked for; `log_length`
    and `vectors_length` count all that is stored. `vectors` pairs sequences with packed rows.
    Messages up to `sitting` belong to earlier sittings.
    """

    messages: tuple[Message, ...]
    log_length: int
    vector_fingerprint: str
    vectors: tuple[tuple[int, bytes], ...]
    vectors_length: int
    session: int
    notes: Notes


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that is ours to finish.

    `outbox` is not empty when its reply was already written; then parts below `sending` are sent
    (as `sent`), that at `sending` is in doubt. `attempts` counts begins, `failures` errors; the
    last one's class is `error`, empty where no error was seen. `facts` came along where they belong
    to a person's scope, unless a commit began the turn. `committing` is set once a commit is on
    its way: from then on its answer, not the lease, says whether the turn was ours.
    """

    lease: Lease
    id: str
    attempts: int
    outbox: bytes
    sending: int
    sent: tuple[int, ...]
    failures: int
    error: str
    entries: tuple[Entry, ...]
    loaded: Loaded
    facts: ScopeNotes | None = None
    committing: asyncio.Event = field(default_factory=asyncio.Event, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """The newest message is fresh; ask again with the token after `wait_ms`."""

    token: str
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """No turn now: `held`, `empty`, `parked`, `deferred`, `moved`, `lost` (the token is void).

    With `held`, `bell` is the delivery with which the holder came.
    """

    why: str
    wake_up: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """A closed turn: where its messages stand, and what comes next under the same lease."""

    exchange: int
    first_seq: int
    then: "OpenTurn | Wait | Nothing"


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """How long leases last and how messages are gathered, in milliseconds."""

    lease_ms: int = 30_000
    coalesce_ms: int = 500
    coalesce_most_ms: int = 2_000


@dataclass(frozen=True, slots=True)
class ScopeCursor:
    """What a warm cache already has of a scope, and the versions under which that is valid."""

    record: int = 0
    record_vector: int = 0
    version: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The newest sequences a warm cache already has; `facts` of a person's scope."""

    seq: int = 0
    vector_seq: int = 0
    record: int = 0
    record_vector: int = 0
    facts: ScopeCursor = ScopeCursor()


@dataclass(frozen=True, slots=True)
class Closing:
    """What a commit writes beside the messages.

    `digest` tells what the tools did, for learning; `writes` what they want written, as JSON.
    """

    ends_session: bool = False
    digest: str = ""
    writes: bytes = b""


PLAINLY = Closing()

_MAX_ENTRIES = 32

LEARN_LATE_S = 60
"""When learning has not followed a commit by then, any process takes it up."""


class TurnStore:
    """The steps of a turn; the only way in which a turn writes."""

    def __init__(self, store: Store, times: TurnTimes, tail: int, usage: UsageStore) -> None:
        self._usage = usage
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._ttl_s = store.ttl_s
        self._times = times
        self._tail = tail

    @property
    def gathering_s(self) -> float:
        """How long a message waits for others that are answered with it."""
        return self._times.coalesce_ms / 1000

    async def acquire(
        self, conversation: Scope, known: Cursor, token: str = "", wake_up: str = ""
    ) -> OpenTurn | Wait | Nothing:
        """Take the lease (or go on with `token`), begin the next turn and load what is new.

        `bell` is the delivery that is served.
        """
        arguments: tuple[Arg, ...] = (token, token_hex(16), wake_up, *self._how(known))
        keys = self._keys.conversation(conversation).all
        acquire = self._scripts["acquire"].command(keys, arguments)
        read_facts = self._read_facts(conversation, known.facts)
        answer, *facts = await self._client.pipeline([acquire, *read_facts])
        begun = _begun(conversation, answer)
        if answer[0] == b"parked":
            # Whoever rang did so too soon, by another clock.
            await self._wake_in(conversation, int(answer[1]))
        if facts and isinstance(begun, OpenTurn):
            return replace(begun, facts=ScopeNotes.of(facts[0]))
        return begun

    async def renew(self, lease: Lease) -> None:
        """Extend the lease; raise `LeaseLost`."""
        await self._step("renew", lease, self._times.lease_ms)

    async def write_outbox(self, lease: Lease, parts: bytes) -> None:
        """Make the reply durable with its first part marked as being sent; raise `LeaseLost`.

        What the model billed for it is counted in the same round trip.
        """
        outbox = self._named("outbox", lease, self._times.lease_ms, parts)
        answer = await self._usage.count_along(lease.conversation, outbox)
        if answer != b"ok":
            raise _refusal(answer, lease)

    async def mark_sending(self, turn: OpenTurn, part: int, sent: Sequence[int]) -> None:
        """Mark a part as being sent and those before it as sent.

        Raise `Superseded` when the last of these may count as sent, otherwise `LeaseLost`.
        """
        sent_ids = ",".join(map(str, sent))
        await self._step("sending", turn.lease, self._times.lease_ms, part, sent_ids, turn.id)

    async def park(self, lease: Lease, pause_ms: int) -> None:
        """Give the lease back and let the turn wait for so long; raise `LeaseLost`.

        The ring is ordered first: one without a parked turn is only one too many.
        """
        await self._wake_in(lease.conversation, pause_ms)
        await self._step("park", lease, pause_ms)

    async def note_failure(self, turn: OpenTurn, error: str) -> None:
        """Give the lease back because the turn failed, by an error of this class.

        A lost lease is no error.
        """
        lease = turn.lease
        arguments = (lease.token, lease.epoch, lease.erasure, turn.id, error)
        await self._scripts["failed"](self._keys.conversation(lease.conversation).all, arguments)

    async def hand_over(self, conversation: Scope, token: str) -> None:
        """Give the lease back unfinished; the attempt does not count. A lost lease is no error."""
        await self._scripts["hand_over"](self._keys.conversation(conversation).all, (token,))

    async def defer(self, lease: Lease, pause_ms: int) -> None:
        """Give the lease back unfinished, and ring again after `pause_ms` if nobody does before.

        Unlike a parked turn it may be begun at once. A lost lease is no error.
        """
        await self._wake_in(lease.conversation, pause_ms)
        await self.hand_over(lease.conversation, lease.token)

    async def commit(
        self,
        turn: OpenTurn,
        messages: Sequence[Message],
        known: Cursor,
        *,
        closing: Closing = PLAINLY,
    ) -> Committed:
        """Close the turn, append its messages and begin the next one.

        Raise `Superseded` when the last part may count as sent, otherwise `LeaseLost`.
        """
        lease = turn.lease
        keys = self._keys.conversation(lease.conversation).all
        flat = [argument for message in messages for argument in arguments_of(message)]
        session = "1" if closing.ends_session else ""
        arguments: tuple[Arg, ...] = (lease.token, lease.epoch, lease.erasure, turn.id)
        arguments += (self._ttl_s, session, closing.digest, closing.writes)
        arguments += (len(messages), *self._how(known), *flat)
        commit = self._scripts["commit"].command(keys, arguments)
        turn.committing.set()
        *_, answer = await self._client.pipeline([*self._notes(lease, messages, closing), commit])
        if answer[0] != b"committed":
            raise _refusal(answer[0], lease)
        _, exchange, first_seq, then = answer
        return Committed(int(exchange), int(first_seq), _begun(lease.conversation, then))

    async def _wake_in(self, conversation: Scope, pause_ms: int) -> None:
        due_ms = int(time() * 1000) + pause_ms
        await self._client.call("ZADD", self._keys.due, due_ms, conversation.tag)

    def _read_facts(self, conversation: Scope, known: ScopeCursor) -> list[ScriptCall]:
        """Read what was learned of the person, where that has a scope of its own."""
        scope = facts_scope(conversation)
        if scope == conversation:
            return []
        arguments = (known.record, known.record_vector, self._tail, *known.version)
        return [self._scripts["read_notes"].command(self._keys.conversation(scope).all, arguments)]

    def _notes(self, lease: Lease, messages: Sequence[Message], closing: Closing) -> list[Command]:
        """Note first that there is something to learn: a note too many only looks once in vain."""
        if not messages and not closing.ends_session:
            return []
        due = time() + LEARN_LATE_S
        return [("ZADD", self._keys.learning, due, lease.conversation.tag)]

    def _how(self, known: Cursor) -> tuple[int, ...]:
        times = self._times
        return (
            *(times.lease_ms, times.coalesce_ms, times.coalesce_most_ms, _MAX_ENTRIES),
            *(known.seq, known.vector_seq, known.record, known.record_vector, self._tail),
        )

    async def _step(self, name: str, lease: Lease, *arguments: int | str | bytes) -> None:
        [answer] = await self._client.pipeline([self._named(name, lease, *arguments)])
        if answer != b"ok":
            raise _refusal(answer, lease)

    def _named(self, name: str, lease: Lease, *arguments: int | str | bytes) -> ScriptCall:
        """Return a step that names its lease and the versions it was loaded under."""
        keys = self._keys.conversation(lease.conversation).all
        named = (lease.token, lease.epoch, lease.erasure, *arguments)
        return self._scripts[name].command(keys, named)


def _refusal(answer: bytes, lease: Lease) -> LeaseLost:
    return (Superseded if answer == b"superseded" else LeaseLost)(lease.conversation.tag)


def _begun(conversation: Scope, answer: Reply) -> OpenTurn | Wait | Nothing:
    what = answer[0].decode()
    if what == "wait":
        return Wait(answer[1].decode(), int(answer[2]))
    if what == "held":
        return Nothing(what, answer[1].decode())
    if what != "turn":
        return Nothing(what)
    _, token, epoch, erasure, turn_id, attempts, outbox, sending, *rest = answer
    sent, failures, error, entries, *loaded = rest
    return OpenTurn(
        lease=Lease(conversation, token.decode(), epoch.decode(), erasure.decode()),
        id=turn_id.decode(),
        attempts=int(attempts),
        outbox=outbox,
        sending=int(sending),
        sent=tuple(int(part) for part in sent.split(b",") if part),
        failures=int(failures),
        error=error.decode(),
        entries=tuple(map(Entry.of_member, entries)),
        loaded=_loaded(loaded),
    )


def _loaded(answer: Sequence[Reply]) -> Loaded:
    log_length, log, fingerprint, vectors_length, vectors, session, notes = answer
    return Loaded(
        messages=tuple(message_of(entry, paired(fields)) for entry, fields in reversed(log)),
        log_length=int(log_length),
        vector_fingerprint=fingerprint.decode(),
        vectors=tuple((seq_of(entry), paired(fields)[b"v"]) for entry, fields in vectors),
        vectors_length=int(vectors_length),
        session=int(session),
        notes=Notes.of(notes),
    )
