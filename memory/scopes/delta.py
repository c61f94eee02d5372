"""The result of reading a scope: all that is newer than what the reader has already.

Reads the answers of the scripts `acquire`, `commit` and `read_scope`; sends nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from memory.scopes.log import paired, seq_of
from memory.store.commands import Reply

Columns = Mapping[bytes, bytes]
"""The columns of a stored entry, by their names."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The newest entries and vectors that a process has of a scope, and the version it read.

    `revision` is that of all that was learned, if the process has all of it, else 0. `facts` is the
    cursor of the person's scope, in which the facts of a private chat are.
    """

    message: int = 0
    message_vector: int = 0
    record: int = 0
    record_vector: int = 0
    version: tuple[str, str] = ("", "")
    revision: int = 0
    facts: "Cursor | None" = None

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


@dataclass(frozen=True, slots=True)
class StreamDelta:
    """What is new in one stream: entries and packed vectors by their ids, ascending.

    `length` and `vectors_length` count all stored entries and vectors. `fingerprint` is that of the
    embeddings, "" if there are no vectors.
    """

    entries: Sequence[tuple[int, Columns]] = ()
    length: int = 0
    fingerprint: str = ""
    vectors: Sequence[tuple[int, bytes]] = ()
    vectors_length: int = 0


@dataclass(frozen=True, slots=True)
class Delta:
    """What is new in a scope, and the version (epoch, erasure) under which it was read.

    `generation` is when the first message of the conversation was sent (Unix ms), 0 before that.
    Messages up to `session` belong to earlier sessions. `messages` is None if the reader did not
    ask for messages. Otherwise it has the newest ones, at most as many as the reader asked for.
    `is_off`: memory is turned off there. `revision` grows with each change of the fields, the
    records and their vectors; 0 if nothing has changed since revisions were counted. `records` is
    None if nothing has changed since the revision that the reader named; then `fields` is empty.
    """

    version: tuple[str, str]
    generation: int
    session: int
    fields: Mapping[str, str]
    records: StreamDelta | None
    messages: StreamDelta | None = None
    is_off: bool = False
    revision: int = 0

    @classmethod
    def of(cls, answer: Sequence[Reply]) -> "Delta":
        """Read a script's answer."""
        head, fields, records, record_vectors, *said = answer
        read = orjson.loads(head)
        newest_first, vectors = said or ((), ())
        return cls(
            version=(read["epoch"], read["erasure"]),
            generation=read.get("generation", 0),
            session=read.get("session", 0),
            fields={name.decode(): value.decode() for name, value in paired(fields).items()},
            records=_stream(read["records"], records, record_vectors)
            if "records" in read
            else None,
            messages=_stream(read["messages"], newest_first[::-1], vectors) if said else None,
            is_off=read.get("is_off", False),
            revision=read.get("revision", 0),
        )


def _stream(
    head: Mapping[str, Reply], entries: Sequence[Reply], vectors: Sequence[Reply]
) -> StreamDelta:
    return StreamDelta(
        entries=[(seq_of(entry), paired(columns)) for entry, columns in entries],
        vectors=[(seq_of(entry), columns[1]) for entry, columns in vectors],
        **head,
    )
