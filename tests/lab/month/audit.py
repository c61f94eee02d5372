"""Checks all that Redis holds after the month: whose it is, when it expires, and what is left.

Values are read with `DUMP` from a server that does not compress, so a word that somebody said
stands in them as it was written.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from memory.store.client import RedisClient
from tests.lab.month.model import WORD

_SLACK_S = 7_200
_SCOPED = re.compile(r"^r:\d+:\{([^}]*)\}:(.+)$")
_LASTING = re.compile(
    r"^r:\d+:(ready|due|learning|reminders|jobs|erased|erasures|erasure_secrets|layout|ballast|"
    r"capacity|admins|models|last_backup|signals|reloads|dead_letters|conversations:\d+|"
    r"scopes:\d+|off_record|reporters|\{access\}:.*|\{usage\}:.*|"
    r"\{[cu]:[^}]*\}:(conversations|reminders))$"
)
"""Keys of the whole bot that never expire; what they list of a scope is erased with the scope."""


@dataclass
class Audit:
    """What was found; `complaints` says what should not be."""

    keys: Counter[str] = field(default_factory=Counter)
    nbytes: Counter[str] = field(default_factory=Counter)
    complaints: Counter[str] = field(default_factory=Counter)


async def audit(
    redis: RedisClient, bot_id: int, known: frozenset[str], gone: Iterable[str], ttl_s: float
) -> Audit:
    """Read every key; `known` are the tags of all scopes, `gone` the words of the forgotten."""
    found = Audit()
    forgotten = frozenset(gone)
    await redis.call("CONFIG", "SET", "rdbcompression", "no")
    async for key in redis.keys_like("*"):
        ttl_ms, value, size = await redis.pipeline(
            [("PTTL", key), ("DUMP", key), ("MEMORY", "USAGE", key)]
        )
        if value is None:
            continue  # it has expired meanwhile
        lasts, scoped = _LASTING.match(key), _SCOPED.match(key)
        name = re.sub(r"^r:\d+:(\{[^}]*\}:)?", "", key)
        name = re.sub(r":?[\d-].*$", "", name) or "?"
        found.keys[name] += 1
        found.nbytes[name] += size or 0
        is_of_another_bot = not key.startswith(f"r:{bot_id}:")
        is_orphan = scoped and scoped[1][:2] in ("c:", "u:") and scoped[1] not in known
        found.complaints["a key of another bot"] += is_of_another_bot
        found.complaints[f"{name} of nobody"] += bool(is_orphan)
        found.complaints[f"{name} never expires"] += not lasts and ttl_ms < 0
        found.complaints[f"{name} expires too late"] += ttl_ms > 1_000 * (ttl_s + _SLACK_S)
        found.complaints[f"a forgotten word in {name}"] += not forgotten.isdisjoint(
            WORD.findall(value.decode("latin1"))
        )
    found.complaints = +found.complaints  # without zeros
    return found
