"""Random Redis commands for comparing two servers, over few keys so that they collide."""

from random import Random

from memory.store.commands import Arg

FullCommand = tuple[Arg, ...]

_KEYS = "e{t}1 e{t}2", "h{t}1 h{t}2", "z{t}1 z{t}2", "x{t}1 x{t}2"
_IDS = " ".join(f"{ms}-{seq}" for ms in range(1, 8) for seq in (0, 1))
_WORDS = {
    "STRING": _KEYS[0],
    "HASH": _KEYS[1],
    "SET": _KEYS[2],
    "STREAM": _KEYS[3],
    "ANY": " ".join(_KEYS),
    "FIELD": "a b c d 10",
    "NUMBER": "-3 -2 -1 0 1 2 3 7",
    "SCORE": "0 1 2 2.5 3 5 8",
    "BOUND": "-inf +inf (2 (5 0 3 2.5 7",
    "COUNT": "-1 0 1 2 3",
    "ID": _IDS,
    "FIRST": f"- (3-0 2 {_IDS}",
    "LAST": f"+ (5-1 6 {_IDS}",
    "CONSUMER": "ann bob",
    "IDLE": "0 0 1000000000",
    "SOME": "1 2 3 4",
}
"""What an upper-case word in angle brackets may be."""

_STREAMS = """
    XADD <STREAM> <ID> f <FIELD> g v; XADD <STREAM> <ID> f m; XLEN <STREAM>
    XRANGE <STREAM> <FIRST> <LAST>; XRANGE <STREAM> <FIRST> <LAST> COUNT 2
    XREVRANGE <STREAM> <LAST> <FIRST>; XREVRANGE <STREAM> <LAST> <FIRST> COUNT 2
    XDEL <STREAM> <ID> <ID>; XTRIM <STREAM> MINID <ID>
"""
_GROUPS = """
    XGROUP+CREATE <STREAM> g 0 MKSTREAM; XGROUP+DELCONSUMER <STREAM> g <CONSUMER>
    XREADGROUP GROUP g <CONSUMER> COUNT <SOME> STREAMS <STREAM> >; XACK <STREAM> g <ID> <ID>
    XINFO+CONSUMERS <STREAM> g; XPENDING <STREAM> g - + 10; XPENDING <STREAM> g <ID> <ID> 1
    XCLAIM <STREAM> g <CONSUMER> <IDLE> <ID>; XCLAIM <STREAM> g <CONSUMER> <IDLE> <ID> JUSTID
    XAUTOCLAIM <STREAM> g <CONSUMER> <IDLE> 0-0 COUNT <SOME>
"""
_FORMS = (
    """
    SET <STRING> <NUMBER>; SET <STRING> <NUMBER> PX 100000; GET <ANY>; STRLEN <STRING>
    DEL <STRING> <ANY>; UNLINK <ANY>; EXISTS <ANY> <ANY> <STRING>; PERSIST <ANY>; PTTL <ANY>
    EXPIRE <ANY> 100; EXPIRE <ANY> 0; PEXPIRE <ANY> 100000; PEXPIRE <ANY> 0; PEXPIRE <ANY> soon
    """,
    """
    HSET <HASH> <FIELD> <NUMBER> <FIELD> w; HSETNX <HASH> <FIELD> n; HGET <ANY> <FIELD>
    HMGET <HASH> <FIELD> <FIELD>; HGETALL <HASH>; HKEYS <HASH>; HVALS <HASH>; HLEN <HASH>
    HDEL <HASH> <FIELD> <FIELD>; HEXISTS <HASH> <FIELD>; HINCRBY <HASH> <FIELD> <NUMBER>
    """,
    """
    ZADD <SET> <SCORE> <FIELD>; ZADD <SET> LT <SCORE> <FIELD>; ZADD <ANY> <SCORE> <FIELD>
    ZREM <SET> <FIELD>; ZSCORE <SET> <FIELD>; ZCARD <SET>; ZCOUNT <SET> <BOUND> <BOUND>
    ZRANGE <SET> <NUMBER> <NUMBER>; ZRANGE <SET> <NUMBER> <NUMBER> REV WITHSCORES
    ZRANGEBYSCORE <SET> <BOUND> <BOUND> WITHSCORES; ZREMRANGEBYSCORE <SET> <BOUND> <BOUND>
    ZRANGEBYSCORE <SET> <BOUND> <BOUND> LIMIT <SOME> <COUNT>; ZREVRANGEBYSCORE <SET> <BOUND> <BOUND>
    ZREVRANGEBYSCORE <SET> <BOUND> <BOUND> LIMIT 0 <COUNT>
    """,
    *(_STREAMS, _GROUPS) * 2,
)
_COMMANDS = [form.strip().replace("\n", ";").split(";") for form in _FORMS]


def commands(random: Random, count: int) -> list[FullCommand]:
    """Return random commands; a server refuses some of them."""
    return [_drawn(random, random.choice(random.choice(_COMMANDS))) for _ in range(count)]


def _drawn(random: Random, form: str) -> FullCommand:
    name, *words = form.split()
    drawn = [random.choice(_WORDS.get(word[1:-1], word).split()) for word in words]
    return (name.replace("+", " "), *drawn)
