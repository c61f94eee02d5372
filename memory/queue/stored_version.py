"""The version of a stored message or reply, so that processes of two releases can run at once.

A value of version 1 begins with its JSON; a later one has the number before it. A release that
writes what the one before cannot read raises `VERSION`. What it writes then goes to new workers
only: an older one gives the turn back.
"""

import re

from memory.store.errors import MemoryFailure

VERSION = 1
"""The newest version that this release reads, and the one that it writes."""

_NUMBER = re.compile(rb"[1-9][0-9]{0,3}(?=\[)")


class NewerValue(MemoryFailure, ValueError):
    """Raised when a newer release has stored a value that this one cannot read."""


def version_of(stored: bytes) -> int:
    """Return the version of a stored value."""
    number = _NUMBER.match(stored)
    return int(number[0]) if number else 1


def stamped(value: bytes) -> bytes:
    """Return a value, which begins with a JSON array, as it is stored."""
    return value if VERSION == 1 else b"%d%b" % (VERSION, value)


def unstamped(stored: bytes) -> bytes:
    """Return the value without its version; raise `NewerValue` if this release cannot read it."""
    if version_of(stored) > VERSION:
        raise NewerValue
    return _NUMBER.sub(b"", stored, count=1) if _NUMBER.match(stored) else stored
