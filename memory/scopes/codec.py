"""How entries of a notebook stand in a Redis stream: a kind and JSON out, typed values in.

An entry written by a newer version may carry fields that are not known here; they are passed over.
"""

from dataclasses import asdict, replace
from typing import Any

import orjson
from pydantic import TypeAdapter

from memory.scopes.records import (
    THE_ONE_BEFORE,
    Again,
    Chunk,
    Ended,
    Entry,
    Fact,
    Hidden,
    Synopsis,
)

_KINDS: dict[str, type[Entry]] = {
    "fact": Fact,
    "synopsis": Synopsis,
    "chunk": Chunk,
    "again": Again,
    "ended": Ended,
    "hidden": Hidden,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_READERS: dict[str, TypeAdapter[Any]] = {name: TypeAdapter(kind) for name, kind in _KINDS.items()}


def written(entry: Entry) -> tuple[str, bytes]:
    """Return kind and JSON; the id of a record is the stream's and not in it."""
    content = asdict(entry)
    content.pop("id", None)
    return _NAMES[type(entry)], orjson.dumps(content)


def read(entry_id: int, kind: str, content: bytes) -> Entry | None:
    """Return an entry; nothing for a kind that is not known here."""
    reader = _READERS.get(kind)
    if reader is None:
        return None
    fields = orjson.loads(content)
    if kind in ("fact", "synopsis", "chunk"):
        fields["id"] = entry_id
    if kind == "ended" and fields.get("by") == THE_ONE_BEFORE:
        fields["by"] = entry_id - 1
    entry: Entry = reader.validate_python(fields)
    return entry


def numbered(entry: Entry, entry_id: int) -> Entry:
    """Return the entry as the store numbered it."""
    return replace(entry, id=entry_id) if isinstance(entry, Fact | Synopsis | Chunk) else entry
