"""Messages and vectors in Redis streams, and what a read of a scope brings.

The id of an entry is `<seq>-0`, so one command reads a range of the history, even if messages in it
were deleted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import orjson

from memory.message import Message, Role
from memory.search.embeddings import Vectors
from memory.store.commands import Reply
from memory.store.keys import Scope
from memory.store.store import Store

_UNTRUSTED = "foreign"
"""The stored role of a person's message with untrusted text. In the assistant's messages this word
follows the role."""

_REFUSED = "refused"
"""The stored role of a message that the model's server refused; `_UNTRUSTED` may follow it."""
_USUAL_FIELDS: Final = 8  # fields that every message has; few have more

_shared = lru_cache(maxsize=1_024)(int)
_name = lru_cache(maxsize=1_024)(bytes.decode)
"""They read a number and a name that stand in many messages, as one object."""


@lru_cache(maxsize=16)
def _read_role(stored: bytes) -> tuple[Role, bool, bool]:
    role: Role = "assistant" if stored.startswith(b"assistant") else "user"
    return role, not stored.endswith(_UNTRUSTED.encode()), stored.startswith(_REFUSED.encode())


def stored_fields(message: Message) -> dict[str, str]:
    """Return the fields of a message to store; the script adds its sequence and exchange.

    Few messages are forwarded, or describe a photo. The others do not have these fields.
    """
    role: str = _REFUSED if message.is_refused and message.role == "user" else message.role
    if not message.is_first_party:
        role = _UNTRUSTED if role == "user" else f"{role} {_UNTRUSTED}"
    return {
        "role": role,
        "text": message.text,
        "sent_at": f"{message.sent_at:.3f}",
        "sender_id": str(message.sender_id),
        "sender_name": message.sender_name,
        "message_ids": ",".join(map(str, message.message_ids)),
        "tokens": str(message.tokens),
        **({"forwarded_from": message.forwarded_from} if message.forwarded_from else {}),
        **({"forwarded_at": str(int(message.forwarded_at))} if message.forwarded_at else {}),
        **({"unseen": message.unseen} if message.unseen else {}),
        **({"lengths": ",".join(map(str, message.lengths))} if message.lengths else {}),
        **({"replied_to": str(message.replied_to)} if message.replied_to else {}),
        **({"used": message.used} if message.used else {}),
        **({"photo": message.photo} if message.photo else {}),
        **({"edited_at": ",".join(map(str, message.edited_at))} if message.edited_at else {}),
        **({"album": message.album} if message.album else {}),
    }


def seq_of(entry_id: bytes) -> int:
    """Return the sequence in the id of a stream entry."""
    return int(entry_id.removesuffix(b"-0"))


def version_of(reply: Sequence[Reply]) -> tuple[str, str]:
    """Read a scope's version from a reply that begins with its epoch and its erasure version."""
    return (reply[0] or b"0").decode(), (reply[1] or b"0").decode()


def message_of(seq: int, fields: Mapping[bytes, bytes]) -> Message:
    """Read the entry of the log with this sequence."""
    role, is_first_party, is_refused = _read_role(fields[b"r"])
    usual = (
        seq,
        _shared(fields[b"x"]),
        role,
        fields[b"t"].decode(),
        float(fields[b"s"]),
        _shared(fields[b"i"]),
        _name(fields[b"n"]),
        _numbers(fields[b"m"]),
        _shared(fields[b"k"]),
        is_first_party,
        is_refused,
    )
    if len(fields) == _USUAL_FIELDS:
        return Message(*usual)
    return Message(
        *usual,
        forwarded_from=fields.get(b"f", b"").decode(),
        forwarded_at=float(fields.get(b"d", 0)),
        unseen=fields.get(b"u", b"").decode(),
        lengths=_numbers(fields.get(b"l", b"")),
        replied_to=int(fields.get(b"p", 0)),
        used=fields.get(b"w", b"").decode(),
        photo=fields.get(b"h", b"").decode(),
        edited_at=_numbers(fields.get(b"e", b"")),
        album=fields.get(b"a", b"").decode(),
    )


def _numbers(stored: bytes) -> tuple[int, ...]:
    if stored.isdigit():  # most messages have one
        return (int(stored),)
    return tuple(map(int, stored.split(b","))) if stored else ()


def paired(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the fields of an entry that a script returned as a flat list."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def packed(vector: Vectors) -> bytes:
    """Return a `(dim,)` vector as a float32 scale and `dim` int8 values (absmax quantisation)."""
    scale = vector.dtype.type(max(float(abs(vector).max(initial=0.0)), 1e-12) / 127)
    return bytes(scale.tobytes() + (vector / scale).round().astype("int8").tobytes())


Columns = Mapping[bytes, bytes]
"""The columns of a stored entry, by their names."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The newest entries and vectors that a process has of a scope, and the version it read."""

    message: int = 0
    message_vector: int = 0
    record: int = 0
    record_vector: int = 0
    version: tuple[str, str] = ("", "")
    revision: int = 0  # of all that was learned, if the process has all of it
    facts: "Cursor | None" = None  # that of the person's scope with the facts of a private chat

    @property
    def request(self) -> dict[str, object]:
        """The request for scripts that also read the messages."""
        vector = {"message_vector": self.message_vector} if self.message_vector else {}
        return {**self.of_records, "message": self.message, **vector}

    @property
    def of_records(self) -> dict[str, object]:
        """The request for scripts that do not read the messages; what is absent is 0."""
        epoch, erasure = self.version
        records = {"record": self.record, "record_vector": self.record_vector}
        named = {"epoch": epoch, "erasure": erasure, "revision": self.revision, **records}
        return {name: value for name, value in named.items() if value not in (0, "0")}


UNKNOWN = -1
"""A length that was not read. A delta then leaves what the reader knows; a stream is read again."""


@dataclass(frozen=True, slots=True)
class StreamDelta:
    """What is new in one stream: entries and packed vectors by their ids, ascending."""

    entries: Sequence[tuple[int, Columns]] = ()
    length: int = 0  # of all stored entries, or `UNKNOWN`
    fingerprint: str = ""  # of the embeddings, "" if there are no vectors
    vectors: Sequence[tuple[int, bytes]] = ()
    vectors_length: int = 0  # as `length`
    newest: int = 0  # all up to this id was read; the newest entries may have been erased


@dataclass(frozen=True, slots=True)
class Delta:
    """What is new in a scope, and the version (epoch, erasure) under which it was read."""

    version: tuple[str, str]
    generation: int  # when the first message of the conversation was sent (Unix ms), 0 before that
    session: int  # messages up to this one belong to earlier sessions
    fields: Mapping[str, str]  # empty without `records`
    records: StreamDelta | None  # None: nothing has changed since the revision of the reader
    messages: StreamDelta | None = None  # the newest, at most as many as were asked for; None: none
    is_off: bool = False  # memory is turned off there
    revision: int = 0  # grows with each change of fields, records and their vectors

    @classmethod
    def of(cls, answer: Sequence[Reply]) -> "Delta":
        """Read a script's answer."""
        head, fields, records, record_vectors, *said = answer
        read = orjson.loads(head)
        newest_first, vectors = said or ((), ())
        learned = read.get("records")
        return cls(
            version=(read["epoch"], read["erasure"]),
            generation=read.get("generation", 0),
            session=read.get("session", 0),
            fields={name.decode(): value.decode() for name, value in paired(fields).items()},
            records=None if learned is None else stream_of(learned, records, record_vectors),
            messages=stream_of(read["messages"], newest_first[::-1], vectors) if said else None,
            is_off=read.get("is_off", False),
            revision=read.get("revision", 0),
        )


def stream_of(
    head: Mapping[str, Reply], entries: Sequence[Reply], vectors: Sequence[Reply]
) -> StreamDelta:
    """Read what a script answers of a stream, with its entries and vectors."""
    return StreamDelta(
        entries=[(seq_of(entry), paired(columns)) for entry, columns in entries],
        vectors=[(seq_of(entry), columns[1]) for entry, columns in vectors],
        **head,
    )


_PAGE_OF_MESSAGES = 400
_VERSIONS = ("epoch", "erasure", "vector_fingerprint", "session", "generation")


async def page_after(
    store: Store, conversation: Scope, newest: tuple[int, int]
) -> tuple[Reply, StreamDelta, bool]:
    """Return `_VERSIONS`, what follows the `newest` message and vector, and whether it is all.

    The versions are None if an erasure or another model came between. A script would need six times
    as long to read a page, and Redis would serve nobody meanwhile.
    """
    keys, (message, vector) = store.keys.scope(conversation), newest
    versions = ("HMGET", keys.meta, *_VERSIONS)
    up_to = ("+", "COUNT", _PAGE_OF_MESSAGES)
    newer_messages = ("XRANGE", keys.log, f"({message}-0", *up_to)
    newer_vectors = ("XRANGE", keys.vectors, f"({vector}-0", *up_to)
    newest_seq = ("HGET", keys.meta, "next_seq")
    commands = (versions, newest_seq, newer_messages, newer_vectors, versions)
    before, next_seq, log, vectors, after = await store.client.pipeline(commands)
    is_last = max(len(log), len(vectors)) < _PAGE_OF_MESSAGES
    page = StreamDelta(
        entries=[(seq_of(entry), columns) for entry, columns in log],
        length=UNKNOWN,
        fingerprint=(before[2] or b"").decode(),
        vectors=[(seq_of(entry), columns[b"v"]) for entry, columns in vectors],
        newest=int(next_seq or 0) if is_last else 0,
    )
    return before if before == after else None, page, is_last
