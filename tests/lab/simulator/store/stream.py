"""The value behind a stream: entries in ascending order, and what each group has been given."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from tests.lab.simulator.store.keyspace import RedisError, Reply

Id = tuple[int, int]

LEAST: Id = (0, 0)
_MOST = 2**64 - 1
MOST: Id = (_MOST, _MOST)


@dataclass(slots=True)
class Pending:
    """An entry that was given out and not acknowledged."""

    consumer: bytes
    delivered_ms: int
    count: int


@dataclass(slots=True)
class Group:
    """One consumer group; `consumers` has when each was last seen."""

    last: Id
    pending: dict[Id, Pending] = field(default_factory=dict)
    consumers: dict[bytes, int] = field(default_factory=dict)


class Stream:
    """Entries and groups; an empty one stays. `changes` counts entries that came or went."""

    __slots__ = ("changes", "entries", "groups", "ids", "last")

    def __init__(self) -> None:
        self.ids: list[Id] = []
        self.entries: dict[Id, list[bytes]] = {}
        self.groups: dict[bytes, Group] = {}
        self.last = LEAST
        self.changes = 0

    def add(self, entry: Id, fields: list[bytes]) -> None:
        """Append an entry; its id must be greater than every one before."""
        if entry <= self.last:
            raise RedisError(
                "ERR The ID specified in XADD is equal or smaller than the target stream top item"
            )
        self.ids.append(entry)
        self.entries[entry] = fields
        self.last = entry
        self.changes += 1

    def remove(self, entry: Id) -> bool:
        """Delete an entry; false when it was not there."""
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
    """Read an id; one without its second half gets `sequence`."""
    ms, dash, rest = text.partition(b"-")
    try:
        return int(ms), int(rest) if dash else sequence
    except ValueError:
        raise RedisError("ERR Invalid stream ID specified as stream command argument") from None


def shown(entry: Id) -> bytes:
    """Write an id."""
    return b"%d-%d" % entry


def bound(text: bytes, *, upper: bool) -> Id:
    """Read one end of a range: `-`, `+`, an id, or `(` and the id that is left out."""
    if text in (b"-", b"+"):
        return LEAST if text == b"-" else MOST
    if not text.startswith(b"("):
        return parsed(text, _MOST if upper else 0)
    entry = parsed(text[1:], _MOST if upper else 0)
    return before(entry) if upper else after(entry)


def before(entry: Id) -> Id:
    """Return the greatest id below one."""
    ms, sequence = entry
    return (ms, sequence - 1) if sequence else (ms - 1, _MOST)


def after(entry: Id) -> Id:
    """Return the smallest id above one."""
    ms, sequence = entry
    return (ms, sequence + 1) if sequence < _MOST else (ms + 1, 0)
