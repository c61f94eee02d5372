"""Commands of streams without groups."""

from collections.abc import Callable

from tests.lab.simulator.store.keyspace import Args, Keyspace, NotSimulatedError, Reply, integer
from tests.lab.simulator.store.stream import Id, Stream, bound, parsed, shown


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


def _range(*, reverse: bool) -> Callable[[Keyspace, Args], Reply]:
    def range_(space: Keyspace, args: Args) -> Reply:
        key, start, stop, *count = args
        stream = space.get(key, Stream)
        if stream is None:
            return []
        first, last = (stop, start) if reverse else (start, stop)
        found = stream.between(bound(first, upper=False), bound(last, upper=True))
        if reverse:
            found.reverse()
        return stream.shown(found[: integer(count[1])] if count else found)

    return range_


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


COMMANDS: dict[bytes, Callable[[Keyspace, Args], Reply]] = {
    b"PUBLISH": publish,
    b"XADD": xadd,
    b"XDEL": xdel,
    b"XLEN": xlen,
    b"XRANGE": _range(reverse=False),
    b"XREVRANGE": _range(reverse=True),
    b"XTRIM": xtrim,
}
