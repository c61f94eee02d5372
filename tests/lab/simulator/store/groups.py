"""Commands of a stream's consumer groups."""

from collections.abc import Callable

from tests.lab.simulator.store.keyspace import (
    OK,
    Args,
    Keyspace,
    NotSimulatedError,
    RedisError,
    Reply,
    integer,
)
from tests.lab.simulator.store.stream import (
    MAX_ID,
    MIN_ID,
    Group,
    Id,
    Pending,
    Stream,
    after,
    bound,
    parsed,
    shown,
)


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
    b"XACK": xack,
    b"XAUTOCLAIM": xautoclaim,
    b"XCLAIM": xclaim,
    b"XGROUP": xgroup,
    b"XINFO": xinfo,
    b"XPENDING": xpending,
    b"XREADGROUP": xreadgroup,
}
