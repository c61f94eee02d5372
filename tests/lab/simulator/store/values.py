"""Commands of keys, strings, hashes and sorted sets, and the time."""

from collections.abc import Callable
from functools import partial

from tests.lab.simulator.store.keyspace import (
    OK,
    Args,
    Hash,
    Keyspace,
    NotSimulatedError,
    Reply,
    SortedSet,
    integer,
    number,
    options,
    written,
)

_NO_FIELDS, _NO_MEMBERS = Hash(), SortedSet()
Scored = list[tuple[float, bytes]]


def delete(space: Keyspace, keys: Args) -> Reply:
    return sum(space.exists(key) and space.delete(key) for key in keys)


def expire(space: Keyspace, args: Args, *, unit_ms: int) -> Reply:
    if len(args) > 2:
        raise NotSimulatedError("EXPIRE with options")
    after_ms = integer(args[1]) * unit_ms
    if not space.exists(args[0]):
        return 0
    space.expire_at(args[0], space.now_ms() + after_ms)
    return 1


def pttl(space: Keyspace, args: Args) -> Reply:
    if not space.exists(args[0]):
        return -2
    expiry = space.expiry(args[0])
    return -1 if expiry is None else expiry - space.now_ms()


def persist(space: Keyspace, args: Args) -> Reply:
    if not space.exists(args[0]) or space.expiry(args[0]) is None:
        return 0
    space.expire_at(args[0], None)
    return 1


def set_(space: Keyspace, args: Args) -> Reply:
    """Set a string, perhaps with `PX` and then `NX`; other options are not simulated."""
    if [each.upper() for each in args[2::2]] not in ([], [b"PX"], [b"PX", b"NX"]):
        raise NotSimulatedError("SET with other options than PX and NX")
    if args[4:] and space.exists(args[0]):
        return None
    space.put(args[0], args[1])
    if args[2:]:
        space.expire_at(args[0], space.now_ms() + integer(args[3]))
    return OK


def time(space: Keyspace, _: Args) -> Reply:
    seconds, ms = divmod(space.now_ms(), 1000)
    return [b"%d" % seconds, b"%d" % (ms * 1000)]


def _fields(space: Keyspace, args: Args) -> Hash:
    return space.get(args[0], Hash) or _NO_FIELDS


def hset(space: Keyspace, args: Args) -> int:
    fields = space.made(args[0], Hash)
    before = len(fields)
    fields.update(zip(args[1::2], args[2::2], strict=True))
    return len(fields) - before


def hsetnx(space: Keyspace, args: Args) -> Reply:
    return 0 if args[1] in _fields(space, args) else hset(space, args)


def hmget(space: Keyspace, args: Args) -> Reply:
    fields = _fields(space, args)
    return [fields.get(name) for name in args[1:]]


def hgetall(space: Keyspace, args: Args) -> Reply:
    return [part for pair in _fields(space, args).items() for part in pair]


def hdel(space: Keyspace, args: Args) -> Reply:
    fields = _fields(space, args)
    gone = sum(fields.pop(name, None) is not None for name in args[1:])
    space.tidy(args[0])
    return gone


def hincrby(space: Keyspace, args: Args) -> Reply:
    value = integer(_fields(space, args).get(args[1], b"0")) + integer(args[2])
    hset(space, [args[0], args[1], b"%d" % value])
    return value


def zadd(space: Keyspace, args: Args) -> Reply:
    """Add one member; `LT` only lowers a score, `GT` only raises it, `NX` changes none."""
    *flags, score, member = args[1:]
    if flags not in ([], [b"LT"], [b"GT"], [b"NX"]):
        raise NotSimulatedError("ZADD of many, or with other options than LT, GT and NX")
    given, members = number(score), space.made(args[0], SortedSet)
    before = members.get(member)
    is_better = {b"LT": given < (before or 0), b"GT": given > (before or 0)}
    if before is None or not flags or is_better.get(flags[0]):
        members[member] = given
    return int(before is None)


def zrem(space: Keyspace, args: Args) -> Reply:
    members = space.get(args[0], SortedSet) or _NO_MEMBERS
    gone = sum(members.pop(member, None) is not None for member in args[1:])
    space.tidy(args[0])
    return gone


def zscore(space: Keyspace, args: Args) -> Reply:
    score = (space.get(args[0], SortedSet) or _NO_MEMBERS).get(args[1])
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


def by_score(space: Keyspace, args: Args, *, reverse: bool = False) -> Reply:
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


def zremrangebyscore(space: Keyspace, args: Args) -> Reply:
    found = _scored(space, *args)
    members = space.get(args[0], SortedSet) or _NO_MEMBERS
    for _, member in found:
        del members[member]
    space.tidy(args[0])
    return len(found)


def _ranked(space: Keyspace, key: bytes) -> Scored:
    return (space.get(key, SortedSet) or _NO_MEMBERS).ranked()


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
    b"DEL": delete,
    b"EXISTS": lambda space, keys: sum(map(space.exists, keys)),
    b"EXPIRE": partial(expire, unit_ms=1000),
    b"GET": lambda space, args: space.get(args[0], bytes),
    b"HDEL": hdel,
    b"HEXISTS": lambda space, args: int(args[1] in _fields(space, args)),
    b"HGET": lambda space, args: _fields(space, args).get(args[1]),
    b"HGETALL": hgetall,
    b"HINCRBY": hincrby,
    b"HKEYS": lambda space, args: list(_fields(space, args)),
    b"HLEN": lambda space, args: len(_fields(space, args)),
    b"HMGET": hmget,
    b"HSET": hset,
    b"HSETNX": hsetnx,
    b"HVALS": lambda space, args: list(_fields(space, args).values()),
    b"PERSIST": persist,
    b"PEXPIRE": partial(expire, unit_ms=1),
    b"PTTL": pttl,
    b"SET": set_,
    b"STRLEN": lambda space, args: len(space.get(args[0], bytes) or b""),
    b"TIME": time,
    b"UNLINK": delete,
    b"ZADD": zadd,
    b"ZCARD": lambda space, args: len(space.get(args[0], SortedSet) or _NO_MEMBERS),
    b"ZCOUNT": lambda space, args: len(_scored(space, *args)),
    b"ZRANGE": zrange,
    b"ZRANGEBYSCORE": by_score,
    b"ZREM": zrem,
    b"ZREMRANGEBYSCORE": zremrangebyscore,
    b"ZREVRANGEBYSCORE": partial(by_score, reverse=True),
    b"ZSCORE": zscore,
}
