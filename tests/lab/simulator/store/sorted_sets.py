"""Commands of sorted sets."""

from collections.abc import Callable

from tests.lab.simulator.store.keyspace import (
    Args,
    Keyspace,
    NotSimulatedError,
    Reply,
    SortedSet,
    integer,
    number,
    options,
    written,
)

_NONE = SortedSet()
Scored = list[tuple[float, bytes]]


def zadd(space: Keyspace, args: Args) -> Reply:
    """Add one member; with `LT`, only if that lowers its score; with `NX`, only if it is new."""
    *flags, score, member = args[1:]
    if flags not in ([], [b"LT"], [b"NX"]):
        raise NotSimulatedError("ZADD of many, or with other options than LT and NX")
    given, members = number(score), space.made(args[0], SortedSet)
    before = members.get(member)
    if before is None or not flags or (flags == [b"LT"] and given < before):
        members[member] = given
    return int(before is None)


def zrem(space: Keyspace, args: Args) -> Reply:
    members = space.get(args[0], SortedSet) or _NONE
    gone = sum(members.pop(member, None) is not None for member in args[1:])
    space.tidy(args[0])
    return gone


def zscore(space: Keyspace, args: Args) -> Reply:
    score = (space.get(args[0], SortedSet) or _NONE).get(args[1])
    return None if score is None else written(score)


def zrange(space: Keyspace, args: Args) -> Reply:
    key, low, high = args[:3]
    asked = options(args[3:], b"REV", b"WITHSCORES")
    found = _ranked(space, key)
    if b"REV" in asked:
        found.reverse()
    start, stop = (_position(arg, len(found)) for arg in (low, high))
    return _shown(found[max(start, 0) : max(stop + 1, 0)], asked)


def _position(arg: bytes, length: int) -> int:
    position = integer(arg)
    return position + length if position < 0 else position


def _by_score(*, reverse: bool) -> Callable[[Keyspace, Args], Reply]:
    def by_score(space: Keyspace, args: Args) -> Reply:
        key, first, last, *rest = args
        low, high = (last, first) if reverse else (first, last)
        found = _scored(space, key, low, high)
        if reverse:
            found.reverse()
        if b"LIMIT" in rest:
            at = rest.index(b"LIMIT")
            start, max_count = integer(rest[at + 1]), integer(rest[at + 2])
            found = found[start : None if max_count < 0 else start + max_count]
            del rest[at : at + 3]
        return _shown(found, options(rest, b"WITHSCORES"))

    return by_score


def zremrangebyscore(space: Keyspace, args: Args) -> Reply:
    found = _scored(space, *args)
    members = space.get(args[0], SortedSet) or _NONE
    for _, member in found:
        del members[member]
    space.tidy(args[0])
    return len(found)


def _ranked(space: Keyspace, key: bytes) -> Scored:
    return (space.get(key, SortedSet) or _NONE).ranked()


def _scored(space: Keyspace, key: bytes, low: bytes, high: bytes) -> Scored:
    (lowest, without_lowest), (highest, without_highest) = _bound(low), _bound(high)
    return [
        (score, member)
        for score, member in _ranked(space, key)
        if (score > lowest if without_lowest else score >= lowest)
        and (score < highest if without_highest else score <= highest)
    ]


def _bound(arg: bytes) -> tuple[float, bool]:
    """Read one end of a range of scores, and whether the end itself is left out."""
    return (number(arg[1:]), True) if arg.startswith(b"(") else (number(arg), False)


def _shown(found: Scored, asked: set[bytes]) -> Reply:
    if b"WITHSCORES" not in asked:
        return [member for _, member in found]
    return [part for score, member in found for part in (member, written(score))]


COMMANDS: dict[bytes, Callable[[Keyspace, Args], Reply]] = {
    b"ZADD": zadd,
    b"ZCARD": lambda space, args: len(space.get(args[0], SortedSet) or _NONE),
    b"ZCOUNT": lambda space, args: len(_scored(space, *args)),
    b"ZRANGE": zrange,
    b"ZRANGEBYSCORE": _by_score(reverse=False),
    b"ZREM": zrem,
    b"ZREMRANGEBYSCORE": zremrangebyscore,
    b"ZREVRANGEBYSCORE": _by_score(reverse=True),
    b"ZSCORE": zscore,
}
