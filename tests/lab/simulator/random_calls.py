"""Random commands, and random steps of the protocol's own scripts, for comparing two servers.

Commands use few keys, so that they collide. Steps are those of one conversation. No answer depends
on the time: messages either always follow quickly enough or never, and leases outlast the test.
"""

from random import Random

import orjson

from memory.store.commands import Arg, Reply

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
Step = tuple[str, tuple[Arg, ...]]

_PEOPLE = (7, 8)
_TTL_S = 86_400
_LEASE_MS = 100_000
_CURSOR = {"message": 0, "message_vector": 0, "record": 0, "record_vector": 0}
_LONG_MS = 10**9
_TIMES = {"lease_ms": _LEASE_MS, "coalesce_ms": _LONG_MS, "max_coalesce_ms": _LONG_MS}
_BEGIN = {**_TIMES, "ttl_s": _TTL_S, "tail": 12, "cursor": _CURSOR}


def commands(random: Random, count: int) -> list[FullCommand]:
    """Return random commands; a server refuses some of them."""
    return [_drawn(random, random.choice(random.choice(_COMMANDS))) for _ in range(count)]


def _drawn(random: Random, form: str) -> FullCommand:
    name, *words = form.split()
    drawn = [random.choice(_WORDS.get(word[1:-1], word).split()) for word in words]
    return (name.replace("+", " "), *drawn)


class RandomSteps:
    """Draws steps; it uses the answers so that later steps name current leases and turns."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._made = 0
        self._token, self._epoch, self._erasure, self._turn = "0:none", "0", "0", "0"
        self._taken: list[str] = []

    def next(self) -> Step:
        """Return the name of a script and its arguments."""
        self._made += 1
        make = self._random.choice(
            (*[self._intake] * 4, *[self._acquire] * 3, *[self._in_turn] * 6, self._erase)
        )
        return make()

    def learn(self, script: str, answer: Reply) -> None:
        """Note the lease and the turn that an answer names; its JSON objects are read already."""
        if script == "intake" and answer["outcome"] == "unmet":
            self._erasure = answer["erasure"]
        begun = answer if script == "acquire" else answer[-1] if script == "commit" else []
        if isinstance(begun, list) and begun and begun[0]["outcome"] == "turn":
            head, versions = begun[0], begun[3][0]
            self._token, self._turn = head["token"], head["id"]
            self._taken = [member.partition(b"|")[0].decode() for member in begun[2]]
            self._epoch, self._erasure = versions["epoch"], versions["erasure"]

    def _intake(self) -> Step:
        update_id = self._made - self._random.choice((0, 0, 0, 1, 5))
        kind = self._random.choice("ttfc")
        member = f"{update_id}|{self._random.choice(_PEOPLE)}|{kind}|text"
        forgotten_until = str(self._random.choice((0, 0, self._made // 2)))
        kept = {"ttl_s": _TTL_S, "max_updates": 20_000, "seen_ms": 10**9}
        read = {"forgotten_until": forgotten_until, "read_under": self._erasure}
        return "intake", _request({**kept, **read}, member)

    def _acquire(self) -> Step:
        token = self._random.choice(("", "", self._token))
        held = {"token": token} if token else {}
        named = {"nonce": f"part{self._made}", "wake_up": f"{self._made}-0|1"}
        return "acquire", _request({**named, **held, **_BEGIN})

    def _in_turn(self) -> Step:
        named = {
            "token": self._token,
            "epoch": self._epoch,
            "erasure": self._erasure,
            "turn": self._turn,
            "lease_ms": _LEASE_MS,
            "ttl_s": _TTL_S,
        }
        closing = {"taken": self._taken, "ends_session": True, "messages": self._said(), **_BEGIN}
        return self._random.choice(
            (
                ("renew", _request({**named, **_TIMES})),
                ("outbox", _request({**named, **_TIMES, "is_shown": True}, "parts")),
                ("outbox", _request({**named, **_TIMES}, "parts")),
                ("sending", _request({**named, "part": 1, "sent": "100"})),
                ("failed", _request({**named, "error": "Error"})),
                ("hand_over", _request(named)),
                ("set_aside", _request({**named, "error": "Error", "max_letters": 3}, "notice")),
                *[("commit", _request({**named, **closing}, ""))] * 3,
            )
        )

    def _said(self) -> list[dict[str, str]]:
        asked = {"role": "user", "text": f"w{self._made}", "sent_at": str(self._made)}
        answered = {"role": "assistant", "text": "yes", "sent_at": str(self._made + 1)}
        sender = {"sender_id": "7", "sender_name": "Ann", "message_ids": "1", "tokens": "3"}
        nobody = {"sender_id": "0", "sender_name": "", "message_ids": "", "tokens": "1"}
        return [{**asked, **sender}, {**answered, **nobody}]

    def _erase(self) -> Step:
        cut, receipt = str(self._made // 2), f"receipt{self._made}"
        erased = {"receipt": receipt, "last_update": cut, "until": self._made - 20}
        confirmed = {"nonce": receipt, "person": "7", "last_update": cut}
        cursor = {**_CURSOR, "epoch": self._epoch, "erasure": self._erasure}
        return self._random.choice(
            (
                ("wipe", _request({**erased, "ttl_s": _TTL_S})),
                ("erase_person", _request({**erased, "person": str(self._random.choice(_PEOPLE))})),
                ("clear", _request({**confirmed, "by_admin": False, "ttl_s": _TTL_S})),
                ("touch", _request({"ttl_s": _TTL_S})),
                ("read_scope", _request({"cursor": cursor, "max": 12})),
            )
        )


def read_answer(answer: Reply) -> Reply:
    """Return an answer with its JSON objects read, without the generation, which is a time."""
    if isinstance(answer, list):
        return [read_answer(part) for part in answer]
    if isinstance(answer, bytes) and answer[:1] == b"{":
        return {name: each for name, each in orjson.loads(answer).items() if name != "generation"}
    return answer


def _request(fields: dict[str, object], *opaque: Arg) -> tuple[Arg, ...]:
    return orjson.dumps(fields), *opaque
