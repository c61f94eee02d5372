"""What a tool wants written: recorded with the reply, carried out after it, once.

Values and their stored form; carrying them out is learning's business.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep a statement of `sender_id` as a fact; `replaces` is what it supersedes, 0 for none.

    `asks_first` keeps it back until the person has agreed by a button: the turn held words that
    were not theirs.
    """

    text: str
    replaces: int = 0
    asks_first: bool = False
    sender_id: int = 0


@dataclass(frozen=True, slots=True)
class ForgetRecord:
    """Erase one record."""

    record_id: int


ToolWrite = Remember | ForgetRecord


def to_json(writes: Sequence[ToolWrite]) -> bytes:
    """Return the stored form, b"" for nothing."""
    if not writes:
        return b""
    return orjson.dumps(
        [
            ["remember", write.text, write.replaces, write.asks_first, write.sender_id]
            if isinstance(write, Remember)
            else ["forget", write.record_id]
            for write in writes
        ]
    )


def from_json(stored: str | bytes) -> tuple[ToolWrite, ...]:
    """Read the stored form; raise `ValueError` when it is not JSON."""
    if not stored:
        return ()
    return tuple(
        Remember(*rest) if kind == "remember" else ForgetRecord(*rest)
        for kind, *rest in orjson.loads(stored)
    )
