"""Streams: their entries, and what each consumer group has read; and their commands."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tests.lab.simulator.store.keyspace import (
    OK,
    Args,
    Keyspace,
    NotSimulatedError,
    RedisError,
    Reply,
    integer,
)

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


def xadd(space: Keyspace, args: Args) -> Reply:
    """Append an entry; approximate trimming is allowed to trim nothing, so it is ignored."""
    key, asked, *fields = args
    if asked == b"MAXLEN":
        _, _, asked, *fields = fields
    stream = space.made(key, Stream)
    entry = _next_id(stream, space.now_ms()) if asked == b"*" else parsed(asked, 0)
    stream.add(entry, fields)
    space.on_added(key)
    return shown(entry)


def _next_id(stream: Stream, now_ms: int) -> Id:
    ms, sequence = stream.last
    return (now_ms, 0) if now_ms > ms else (ms, sequence + 1)


def xlen(space: Keyspace, args: Args) -> Reply:
    stream = space.get(args[0], Stream)
    return len(stream.ids) if stream else 0


def xrange(space: Keyspace, args: Args, *, reverse: bool = False) -> Reply:
    key, start, stop, *count = args
    stream = space.get(key, Stream)
    if stream is None:
        return []
    first, last = (stop, start) if reverse else (start, stop)
    found = stream.between(bound(first, upper=False), bound(last, upper=True))
    if reverse:
        found.reverse()
    return stream.shown(found[: integer(count[1])] if count else found)


def xdel(space: Keyspace, args: Args) -> Reply:
    stream = space.get(args[0], Stream)
    return sum(stream.remove(parsed(entry, 0)) for entry in args[1:]) if stream else 0


def xtrim(space: Keyspace, args: Args) -> Reply:
    """Trim below an id; `~` trims exactly, which Redis allows."""
    key, by, *rough, min_id = args
    if by != b"MINID" or rough not in ([], [b"~"]):
        raise NotSimulatedError("XTRIM by anything but MINID")
    stream = space.get(key, Stream)
    if stream is None:
        return 0
    lowest = parsed(min_id, 0)
    return sum(map(stream.remove, [entry for entry in stream.ids if entry < lowest]))


def publish(space: Keyspace, args: Args) -> Reply:
    """Publish to the one channel; no subscriber counts, because a real server has none."""
    space.on_published(args[1])
    return 0


def xreadgroup(space: Keyspace, args: Args) -> Reply:
    """Read new entries of one stream without waiting; the caller waits if the command blocks."""
    (_, name, reader), (key, start) = args[:3], args[-2:]
    if start != b">" or args[-3] != b"STREAMS":
        raise NotSimulatedError("XREADGROUP of anything but the new entries of one stream")
    max_count = integer(args[args.index(b"COUNT") + 1]) if b"COUNT" in args else None
    stream, group = _group(space, key, name, " in XREADGROUP with GROUP option")
    now_ms = group.consumers[reader] = space.now_ms()
    if stream.last <= group.last:
        return None
    found = stream.between(after(group.last), MAX_ID)[:max_count]
    if not found:
        return None
    group.last = found[-1]
    for entry in found:
        group.pending[entry] = Pending(reader, now_ms, 1)
    return [[key, stream.shown(found)]]


def xack(space: Keyspace, args: Args) -> Reply:
    stream = space.get(args[0], Stream)
    group = stream.groups.get(args[1]) if stream else None
    if group is None:
        return 0
    return sum(group.pending.pop(parsed(entry, 0), None) is not None for entry in args[2:])


def xpending(space: Keyspace, args: Args) -> Reply:
    """List pending entries between two ids, of all consumers."""
    key, name, first, last, max_count = args
    _, group = _group(space, key, name)
    low, high, now_ms = bound(first, upper=False), bound(last, upper=True), space.now_ms()
    found = [(e, given) for e, given in _ascending(group) if low <= e <= high]
    return [
        [shown(entry), given.consumer, now_ms - given.delivered_ms, given.count]
        for entry, given in found[: integer(max_count)]
    ]


def xclaim(space: Keyspace, args: Args) -> Reply:
    """Claim one entry; this counts as a delivery unless only ids are asked for."""
    key, name, claimer, idle_ms, asked, *rest = args
    if rest not in ([], [b"JUSTID"]):
        raise NotSimulatedError("XCLAIM with other options than JUSTID")
    stream, group = _group(space, key, name)
    now_ms = group.consumers[claimer] = space.now_ms()
    entry = parsed(asked, 0)
    given = group.pending.get(entry)
    if given is None or now_ms - given.delivered_ms < integer(idle_ms):
        return []
    if entry not in stream.entries:
        del group.pending[entry]
        return []
    _give(given, claimer, now_ms, counted=not rest)
    return [shown(entry)] if rest else stream.shown([entry])


def xautoclaim(space: Keyspace, args: Args) -> Reply:
    """Claim pending entries in order; look at ten times as many as may be claimed."""
    key, name, claimer, idle_ms, start, option, max_count = args
    if (start, option) != (b"0-0", b"COUNT"):
        raise NotSimulatedError("XAUTOCLAIM not from the start, or without a count")
    stream, group = _group(space, key, name)
    now_ms = group.consumers[claimer] = space.now_ms()
    claimed: list[Id] = []
    gone: list[Id] = []
    cursor, attempts = MIN_ID, integer(max_count) * 10
    for entry, given in _ascending(group):
        if attempts == 0 or len(claimed) + len(gone) >= integer(max_count):
            cursor = entry
            break
        attempts -= 1
        if entry not in stream.entries:
            del group.pending[entry]
            gone.append(entry)
        elif now_ms - given.delivered_ms >= integer(idle_ms):
            _give(given, claimer, now_ms, counted=True)
            claimed.append(entry)
    return [shown(cursor), stream.shown(claimed), list[Reply](map(shown, gone))]


def _ascending(group: Group) -> list[tuple[Id, Pending]]:
    return sorted(group.pending.items(), key=lambda pair: pair[0])


def _give(given: Pending, claimer: bytes, now_ms: int, *, counted: bool) -> None:
    given.consumer = claimer
    given.delivered_ms = now_ms
    given.count += counted


def xgroup(space: Keyspace, args: Args) -> Reply:
    verb, key, name, *rest = args
    if verb == b"CREATE" and rest == [b"0", b"MKSTREAM"]:
        stream = space.made(key, Stream)
        if name in stream.groups:
            raise RedisError("BUSYGROUP Consumer Group name already exists")
        stream.groups[name] = Group(MIN_ID)
        return OK
    if verb != b"DELCONSUMER":
        raise NotSimulatedError("XGROUP other than CREATE … 0 MKSTREAM and DELCONSUMER")
    _, group = _group(space, key, name)
    mine = [entry for entry, given in group.pending.items() if given.consumer == rest[0]]
    for entry in mine:
        del group.pending[entry]
    group.consumers.pop(rest[0], None)
    return len(mine)


def xinfo(space: Keyspace, args: Args) -> Reply:
    verb, key, *rest = args
    if verb != b"CONSUMERS":
        raise NotSimulatedError("XINFO other than CONSUMERS")
    if space.get(key, Stream) is None:
        raise RedisError("ERR no such key")
    _, group = _group(space, key, rest[0])
    return [
        [
            *(b"name", name),
            *(b"pending", sum(given.consumer == name for given in group.pending.values())),
            *(b"idle", space.now_ms() - seen_ms),
        ]
        for name, seen_ms in sorted(group.consumers.items())
    ]


def _group(space: Keyspace, key: bytes, name: bytes, where: str = "") -> tuple[Stream, Group]:
    stream = space.get(key, Stream)
    if stream is None or name not in stream.groups:
        text = f"NOGROUP No such key '{key.decode()}' or consumer group '{name.decode()}'"
        raise RedisError(text + where)
    return stream, stream.groups[name]


COMMANDS: dict[bytes, Callable[[Keyspace, Args], Reply]] = {
    b"PUBLISH": publish,
    b"XACK": xack,
    b"XADD": xadd,
    b"XAUTOCLAIM": xautoclaim,
    b"XCLAIM": xclaim,
    b"XDEL": xdel,
    b"XGROUP": xgroup,
    b"XINFO": xinfo,
    b"XLEN": xlen,
    b"XPENDING": xpending,
    b"XRANGE": xrange,
    b"XREADGROUP": xreadgroup,
    b"XREVRANGE": partial(xrange, reverse=True),
    b"XTRIM": xtrim,
}
