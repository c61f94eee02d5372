"""Random Redis commands for comparing two servers, over few keys so that they collide."""

from collections.abc import Callable
from random import Random

from memory.store.commands import Arg

FullCommand = tuple[Arg, ...]

_KEYS = {kind: tuple(f"{kind}{{t}}{n}" for n in (1, 2)) for kind in "ehzx"}
_ALL = tuple(key for keys in _KEYS.values() for key in keys)
_FIELDS = ("a", "b", "c", "d", "10")
_IDS = tuple(f"{ms}-{seq}" for ms in range(1, 8) for seq in (0, 1))
_SCORES = ("-inf", "+inf", "(2", "(5", "0", "3", "2.5", "7")
_CONSUMERS = ("ann", "bob")


def commands(random: Random, count: int) -> list[FullCommand]:
    """Return random commands; a server refuses some of them."""
    makers = (_keys, _hashes, _sorted_sets, _streams, _streams, _groups, _groups)
    return [random.choice(random.choice(makers)(random))() for _ in range(count)]


Makers = tuple[Callable[[], FullCommand], ...]


def _keys(r: Random) -> Makers:
    key, other, any_key = r.choice(_KEYS["e"]), r.choice(_ALL), r.choice(_ALL)
    return (
        lambda: ("SET", key, r.randint(-3, 9), *r.choice(((), ("PX", 100_000)))),
        lambda: ("GET", any_key),
        lambda: ("STRLEN", key),
        lambda: ("DEL", key, other),
        lambda: ("UNLINK", other),
        lambda: ("EXISTS", any_key, other, key),
        lambda: ("EXPIRE", any_key, r.choice((100, 200, 0))),
        lambda: ("PEXPIRE", any_key, r.choice((100_000, 0, "soon"))),
        lambda: ("PERSIST", any_key),
        lambda: ("PTTL", any_key),
    )


def _hashes(r: Random) -> Makers:
    key, field = r.choice(_KEYS["h"]), r.choice(_FIELDS)
    return (
        lambda: ("HSET", key, field, r.randint(0, 9), r.choice(_FIELDS), "w"),
        lambda: ("HSETNX", key, field, "n"),
        lambda: ("HGET", r.choice(_ALL), field),
        lambda: ("HMGET", key, field, r.choice(_FIELDS)),
        lambda: ("HGETALL", key),
        lambda: ("HKEYS", key),
        lambda: ("HVALS", key),
        lambda: ("HDEL", key, field, r.choice(_FIELDS)),
        lambda: ("HEXISTS", key, field),
        lambda: ("HINCRBY", key, field, r.randint(-2, 5)),
    )


def _sorted_sets(r: Random) -> Makers:
    key, member = r.choice(_KEYS["z"]), r.choice(_FIELDS)
    low, high = r.choice(_SCORES), r.choice(_SCORES)
    limit = r.choice(((), ("LIMIT", r.randint(0, 2), r.randint(-1, 3))))
    scores = r.choice(((), ("WITHSCORES",)))
    return (
        lambda: ("ZADD", key, *r.choice(((), ("LT",))), r.choice((*range(9), 2.5)), member),
        lambda: ("ZADD", r.choice(_ALL), r.randint(0, 8), member),
        lambda: ("ZREM", key, member),
        lambda: ("ZSCORE", key, member),
        lambda: ("ZCARD", key),
        lambda: ("ZCOUNT", key, low, high),
        lambda: ("ZRANGE", key, r.randint(-3, 3), r.randint(-3, 3), *scores),
        lambda: ("ZRANGE", key, r.randint(-3, 3), r.randint(-3, 3), "REV", *scores),
        lambda: ("ZRANGEBYSCORE", key, low, high, *scores, *limit),
        lambda: ("ZREVRANGEBYSCORE", key, low, high, *limit),
        lambda: ("ZREMRANGEBYSCORE", key, low, high),
    )


def _streams(r: Random) -> Makers:
    key, entry = r.choice(_KEYS["x"]), r.choice(_IDS)
    first, last = r.choice(("-", "(3-0", "2", *_IDS)), r.choice(("+", "(5-1", "6", *_IDS))
    count = r.choice(((), ("COUNT", 2)))
    return (
        lambda: ("XADD", key, entry, "f", r.choice(_FIELDS), "g", "v"),
        lambda: ("XADD", key, entry, "f", "m"),
        lambda: ("XLEN", key),
        lambda: ("XRANGE", key, first, last, *count),
        lambda: ("XREVRANGE", key, last, first, *count),
        lambda: ("XDEL", key, entry, r.choice(_IDS)),
        lambda: ("XTRIM", key, "MINID", entry),
    )


def _groups(r: Random) -> Makers:
    key, entry, consumer = r.choice(_KEYS["x"]), r.choice(_IDS), r.choice(_CONSUMERS)
    idle_ms = r.choice((0, 0, 10**9))
    read = ("XREADGROUP", "GROUP", "g", consumer, "COUNT")
    return (
        lambda: ("XGROUP CREATE", key, "g", "0", "MKSTREAM"),
        lambda: ("XGROUP DELCONSUMER", key, "g", consumer),
        lambda: (*read, 2, "STREAMS", key, ">"),
        lambda: (*read, 1, "STREAMS", key, ">"),
        lambda: ("XACK", key, "g", entry, r.choice(_IDS)),
        lambda: ("XINFO CONSUMERS", key, "g"),
        lambda: ("XPENDING", key, "g", "-", "+", 10),
        lambda: ("XPENDING", key, "g", entry, entry, 1),
        lambda: ("XCLAIM", key, "g", consumer, idle_ms, entry, *r.choice(((), ("JUSTID",)))),
        lambda: ("XAUTOCLAIM", key, "g", consumer, idle_ms, "0-0", "COUNT", r.randint(1, 4)),
    )
