"""Keys with their values and expiry, on the caller's clock; it does not know the commands."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TypeAlias, TypeVar

Reply: TypeAlias = "int | bytes | list[Reply] | None"
Args: TypeAlias = list[bytes]
Kind = TypeVar("Kind")


class RedisError(Exception):
    """Raised when the server answers with an error; the text begins with Redis's error code."""


class NotSimulatedError(Exception):
    """Raised for a command or option that the in-memory Redis does not know."""


class Status(bytes):
    """A simple string, as `+OK`: Lua sees it as a table, a client as bytes."""

    __slots__ = ()


OK = Status(b"OK")


class Hash(dict[bytes, bytes]):
    """Fields and values, in order of their first writing."""

    __slots__ = ()


class SortedSet(dict[bytes, float]):
    """Members and scores."""

    __slots__ = ()

    def ranked(self) -> list[tuple[float, bytes]]:
        """Return scores and members in the order of Redis."""
        return sorted((score, member) for member, score in self.items())


class Keyspace:
    """One database; as in Redis, empty values are deleted, except streams."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.on_added: Callable[[bytes], None] = lambda _: None
        """Called with each stream that got an entry, so that waiting readers can be woken up."""
        self.on_published: Callable[[bytes], None] = lambda _: None
        """Called with each message that is published; there is one channel."""
        self._values: dict[bytes, object] = {}
        self._expires: dict[bytes, int] = {}

    def get(self, key: bytes, kind: type[Kind]) -> Kind | None:
        """Return the value of a key or `None`; raise `RedisError` if it is of another kind."""
        if key in self._expires and self._expires[key] <= self.now_ms():
            self.delete(key)
        value = self._values.get(key)
        if value is not None and not isinstance(value, kind):
            raise RedisError("WRONGTYPE Operation against a key holding the wrong kind of value")
        return value

    def made(self, key: bytes, kind: type[Kind]) -> Kind:
        """Return the value of a key; store a new empty one if there is none."""
        value = self.get(key, kind)
        if value is None:
            value = kind()
            self._values[key] = value
        return value

    def put(self, key: bytes, value: object) -> None:
        """Store a value, without expiry."""
        self._values[key] = value
        self._expires.pop(key, None)

    def tidy(self, key: bytes) -> None:
        """Delete a key if its value is empty."""
        if not self._values.get(key, True):
            self.delete(key)

    def delete(self, key: bytes) -> bool:
        """Delete a key; return false if it does not exist."""
        self._expires.pop(key, None)
        return self._values.pop(key, None) is not None

    def exists(self, key: bytes) -> bool:
        return self.get(key, object) is not None

    def like(self, pattern: str) -> list[bytes]:
        """Return the living keys that match a glob pattern, in order."""
        names = [key for key in self._values if fnmatchcase(key.decode(), pattern)]
        return sorted(filter(self.exists, names))

    def expiry(self, key: bytes) -> int | None:
        """Return when a key expires, in Unix milliseconds."""
        return self._expires.get(key)

    def expire_at(self, key: bytes, at_ms: int | None) -> None:
        """Set or remove the expiry of an existing key; a time in the past deletes the key."""
        if at_ms is None:
            self._expires.pop(key, None)
        elif at_ms <= self.now_ms():
            self.delete(key)
        else:
            self._expires[key] = at_ms


def integer(arg: bytes) -> int:
    """Read a whole number as Redis does."""
    try:
        return int(arg)
    except ValueError:
        raise RedisError("ERR value is not an integer or out of range") from None


def number(arg: bytes) -> float:
    """Read a number, `inf` included."""
    try:
        return float(arg)
    except ValueError:
        raise RedisError("ERR value is not a valid float") from None


def written(value: float) -> bytes:
    """Write a number as Redis does: a whole number without a point."""
    if value == value // 1 and abs(value) < 1e17:
        return b"%d" % value
    return repr(value).encode()


def options(args: Args, *known: bytes) -> set[bytes]:
    """Read trailing options, in any order."""
    found = {arg.upper() for arg in args}
    if unknown := found.difference(known):
        raise NotSimulatedError(repr(unknown))
    return found
