"""What a read of a scope brings: all that is newer than what the reader already has.

Reads the answers of the scripts; sends nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.message import Message
from memory.scopes.log import message_of, paired, seq_of
from memory.store.commands import Reply


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


def loaded_of(answer: Sequence[Reply]) -> Loaded:
    """Read what a script loaded with a turn."""
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
