"""Shows what Redis has stored of one scope, key by key, for the playground's inspector.

It shows what people said, so only the playground may call it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memory.store.client import RedisClient
from memory.store.commands import Reply
from memory.store.keys import Keys, Scope

_NEWEST = 20
"""The most entries shown of a stream or a sorted set."""

_VALUE_CHARS = 600


@dataclass(frozen=True, slots=True)
class KeyDump:
    """One key with its newest entries, oldest first."""

    kind: str  # the last part of its name
    type: str
    nbytes: int  # according to Redis
    count: int
    expires_s: int  # -1 if it does not expire
    entries: tuple[tuple[str, str], ...]  # a name (field, id or score) and a value, shortened


async def dump_keys(client: RedisClient, keys: Keys, scope: Scope) -> list[KeyDump]:
    """Return what is stored under one scope, in the order of its keys; absent keys are left out."""
    names = keys.scope(scope)
    replies = await client.pipeline(
        [(word, name) for name in names for word in ("TYPE", "MEMORY USAGE", "TTL")]
    )
    sizes = zip(names, replies[::3], replies[1::3], replies[2::3], strict=True)
    found = [(name, kind.decode(), *size) for name, kind, *size in sizes if kind.decode() in _READ]
    read = await client.pipeline(
        [
            command
            for name, kind, *_ in found
            for count, newest, *arguments in (_READ[kind],)
            for command in ((count, name), (newest, name, *arguments))
        ]
    )
    return [
        KeyDump(
            kind=name.rpartition(":")[2],
            type=kind,
            nbytes=int(nbytes or 0),
            count=int(count or 0),
            expires_s=int(expires_s),
            entries=tuple(_entries(kind, content)),
        )
        for (name, kind, nbytes, expires_s), count, content in zip(
            found, read[::2], read[1::2], strict=True
        )
        if content
    ]


def _entries(kind: str, content: Reply) -> Iterator[tuple[str, str]]:
    match kind:
        case "stream":
            for entry_id, fields in reversed(content):
                pairs = (f"{_shown(name)}: {_shown(value)}" for name, value in fields.items())
                yield _shown(entry_id), " · ".join(pairs)
        case "hash":
            yield from ((_shown(name), _shown(value)) for name, value in sorted(content.items()))
        case "zset":
            yield from ((f"{score:.0f}", _shown(member)) for member, score in content)
        case _:
            yield "", _shown(content)


def _shown(value: bytes) -> str:
    """Return a value as text, or its length if it is not text, such as a vector."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"{len(value)} bytes"
    if not text.isprintable() and "\n" not in text:
        return f"{len(value)} bytes"
    text = text.rstrip(" ")
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]} …"


_READ: Mapping[str, tuple[str | int, ...]] = {
    "stream": ("XLEN", "XREVRANGE", "+", "-", "COUNT", _NEWEST),
    "hash": ("HLEN", "HGETALL"),
    "zset": ("ZCARD", "ZRANGE", -_NEWEST, -1, "WITHSCORES"),
    "string": ("EXISTS", "GET"),
}
"""The types of this project's keys: the command that counts, and the one that reads the newest."""
