"""The value of a stream: entries in ascending order, and what each group has read."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from tests.lab.simulator.store.keyspace import RedisError, Reply

Id = tuple[int, int]

MIN_ID: Id = (0, 0)
_MAX_HALF = 2**64 - 1
MAX_ID: Id = (_MAX_HALF, _MAX_HALF)


@dataclass(slots=True)
class Pending:
    """An entry that was delivered and not acknowledged."""

    consumer: bytes
    delivered_ms: int
    count: int


@dataclass(slots=True)
class Group:
    """One consumer group; `consumers` has the time when each was last seen, in milliseconds."""

    last: Id
    pending: dict[Id, Pending] = field(default_factory=dict)
    consumers: dict[bytes, int] = field(default_factory=dict)


class Stream:
    """Entries and groups. `changes` counts entries that were added or removed."""

    __slots__ = ("changes", "entries", "groups", "ids", "last")

    def __init__(self) -> None:
        self.ids: list[Id] = []
        self.entries: dict[Id, list[bytes]] = {}
        self.groups: dict[bytes, Group] = {}
        self.last = MIN_ID
        self.changes = 0

    def add(self, entry: Id, fields: list[bytes]) -> None:
        """Append an entry; its id must be greater than all earlier ids."""
        if entry <= self.last:
            raise RedisError(
                "ERR The ID specified in XADD is equal or smaller than the target stream top item"
            )
        self.ids.append(entry)
        self.entries[entry] = fields
        self.last = entry
        self.changes += 1

    def remove(self, entry: Id) -> bool:
        """Delete an entry; return false if it does not exist."""
        if self.entries.pop(entry, None) is None:
            return False
        del self.ids[bisect_left(self.ids, entry)]
        self.changes += 1
        return True

    def between(self, first: Id, last: Id) -> list[Id]:
        """Return the ids from `first` to `last`, both included."""
        return self.ids[bisect_left(self.ids, first) : bisect_right(self.ids, last)]

    def shown(self, ids: list[Id]) -> list[Reply]:
        """Return entries as a server answers them."""
        return [[shown(entry), list[Reply](self.entries[entry])] for entry in ids]


def parsed(text: bytes, sequence: int) -> Id:
    """Read an id; if its second half is missing, use `sequence`."""
    ms, dash, rest = text.partition(b"-")
    try:
        return int(ms), int(rest) if dash else sequence
    except ValueError:
        raise RedisError("ERR Invalid stream ID specified as stream command argument") from None


def shown(entry: Id) -> bytes:
    """Write an id."""
    return b"%d-%d" % entry


def bound(text: bytes, *, upper: bool) -> Id:
    """Read one end of a range: `-`, `+`, an id, or `(` and an id that is excluded."""
    if text in (b"-", b"+"):
        return MIN_ID if text == b"-" else MAX_ID
    if not text.startswith(b"("):
        return parsed(text, _MAX_HALF if upper else 0)
    entry = parsed(text[1:], _MAX_HALF if upper else 0)
    return before(entry) if upper else after(entry)


def before(entry: Id) -> Id:
    """Return the greatest id below an id."""
    ms, sequence = entry
    return (ms, sequence - 1) if sequence else (ms - 1, _MAX_HALF)


def after(entry: Id) -> Id:
    """Return the smallest id above an id."""
    ms, sequence = entry
    return (ms, sequence + 1) if sequence < _MAX_HALF else (ms + 1, 0)
