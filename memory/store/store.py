"""One bot's Redis as one value: client, names of keys, scripts. Leases by name, and the layout.

A Lua script makes a step atomic. Its first line may name shared parts ("-- Uses: scope, delta"),
which are put before it. Each script takes one JSON object, and after it opaque bytes. A script of a
scope takes all its `ScopeKeys`, or those that its second line names ("-- Keys: meta, log"). Any
other script says in a comment which keys it takes.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path
from secrets import token_hex
from time import monotonic, time
from typing import NoReturn

import orjson

from memory.store.client import RedisClient
from memory.store.commands import Arg, Command, Reply, Request, Script, ScriptCall
from memory.store.errors import LeaseLost, StoreError, StoreRefused
from memory.store.journal import ErasureJournal
from memory.store.keys import KEY_SUFFIXES, Keys, Scope

_LUA = Path(__file__).parent / "lua"
_USES, _KEYS = "-- Uses: ", "-- Keys: "


@cache
def source(name: str, folder: Path = _LUA) -> str:
    """Return the text of a script behind its shared parts, of which `clock` is always the first.

    Lines of comment are left out, because a process sends each text once, and Redis keeps it.
    """
    text = (folder / f"{name}.lua").read_text()
    first_line = text.partition("\n")[0]
    used = first_line.removeprefix(_USES).split(", ") if first_line.startswith(_USES) else []
    shared = [(_LUA / "shared" / f"{part}.lua").read_text() for part in ("clock", *used)]
    lines = "\n".join((*shared, text)).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


@cache
def keys_used_by(name: str) -> Sequence[str]:
    """Return the suffixes of the keys that a script of one scope takes."""
    line = (_LUA / f"{name}.lua").read_text().split("\n", 2)[1]
    return line.removeprefix(_KEYS).split(", ") if line.startswith(_KEYS) else KEY_SUFFIXES


@cache
def script_names(folder: Path = _LUA) -> tuple[str, ...]:
    """Return the names of all scripts of a folder, in alphabetical order."""
    return tuple(sorted(path.stem for path in folder.glob("*.lua")))


class Scripts(dict[str, Script]):
    """All scripts of a folder by their names, ready to be called on one client."""

    def __init__(self, client: RedisClient, folder: Path = _LUA) -> None:
        names = script_names(folder)
        super().__init__({name: Script(client, source(name, folder)) for name in names})


_MAX_ERASED = 10_000
_ERASED_S = 60  # how long the stream `erased` lives; every process reads it every second

JOBS, RELOADS = "jobs", "reloads"
"""Topics of notes to other processes. A topic has no colon; the tag of a scope has one.

They are in the stream `erased`, because every process reads it anyway. An older version takes such
a note for the erasure of a scope that does not exist.
"""


@dataclass(frozen=True, slots=True)
class Store:
    """What every package needs to work on one bot's Redis."""

    client: RedisClient
    keys: Keys
    scripts: Scripts
    ttl_s: int  # after so many seconds without activity a scope expires
    # Set when this process has erased something, so that the embedded server rewrites its file.
    erased: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def journal(self) -> ErasureJournal:
        """The journal of erasures."""
        return ErasureJournal(self.client, self.keys, self.ttl_s)

    def call(self, script: str, scope: Scope, request: Request, *opaque: Arg) -> ScriptCall:
        """Return the call of a script with the keys of a scope that it takes, for a pipeline."""
        base = self.keys.base(scope)
        keys = [base + word for word in keys_used_by(script)]
        return self.scripts[script].command(keys, request, *opaque)

    async def run(self, script: str, scope: Scope, request: Request, *opaque: Arg) -> Reply:
        """Run a script of one scope, as `call` describes it; raise a `StoreError` if it fails."""
        [reply] = await self.client.pipeline([self.call(script, scope, request, *opaque)])
        return reply

    async def read_meta(self, scope: Scope, *names: str) -> Reply:
        """Return what a scope's hash `meta` has under these names, in order; None for nothing."""
        return await self.client.call("HMGET", self.keys.scope(scope).meta, *names)

    def indexing(self, scope: Scope) -> Command:
        """Put a scope into the index that erasures read; sent before anything is stored there."""
        return ("ZADD", self.keys.index_of(scope), int(time()), scope.tag)

    async def tell_erased(self, scope: Scope, erasure: int = 0, *messages: int) -> None:
        """Tell every process that something in a scope was erased (`Scopes.drop_erased`).

        `erasure` is the version after it, 0 if it may have touched other messages than these.
        Processes never use cached content after an erasure, so it is no error if this fails.
        """
        self.erased.set()
        only = ("only", orjson.dumps([erasure, *messages])) if erasure else ()
        await self.note(scope.tag, *only)

    async def note(self, tag: str, *fields: Arg) -> None:
        """Send a tag to every process, which reads it in a second; ignore a `StoreError`."""
        stream = (self.keys.erased, "MAXLEN", "~", _MAX_ERASED, "*")
        entry = ("XADD", *stream, "c", tag, *fields)
        with suppress(StoreError):
            await self.client.pipeline([entry, ("EXPIRE", self.keys.erased, _ERASED_S)])

    async def due_in_s(self, key: str) -> float:
        """Return when the first member of a sorted set is due (Unix ms), inf without members."""
        first = await self.client.call("ZRANGE", key, 0, 0, "WITHSCORES")
        return first[0][1] / 1000 - time() if first else inf

    def lease(self, key: str, ttl_ms: int) -> "NamedLease":
        """Return this process's lease on a key."""
        return NamedLease(self.scripts, key, ttl_ms)


class NamedLease:
    """A lease on a key, for one process at a time; extend it well before `ttl_ms` is over."""

    def __init__(self, scripts: Scripts, key: str, ttl_ms: int) -> None:
        self._scripts = scripts
        self._key = key
        self.ttl_ms = ttl_ms
        self.token = token_hex(16)
        self.sure_until = 0.0  # until then, by the monotonic clock, no other process has it

    async def hold(self) -> bool:
        """Take or extend the lease; false if another process has it."""
        asked_at, request = monotonic(), {"token": self.token, "ttl_ms": self.ttl_ms}
        is_held = bool(await self._scripts["lease"]([self._key], request))
        self.sure_until = asked_at + self.ttl_ms / 2_000 if is_held else 0.0
        return is_held

    async def renew(self) -> None:
        """Do as `hold`; raise `LeaseLost` if another process has it."""
        if not await self.hold():
            raise LeaseLost(self._key)

    async def keep(self) -> NoReturn:
        """Extend the lease every third of its time, until cancelled."""
        while True:
            await asyncio.sleep(self.ttl_ms / 3_000)
            with suppress(StoreError):
                await self.hold()

    async def release(self) -> None:
        """Give the lease back if this process has it."""
        self.sure_until = 0.0
        await self._scripts["unlease"]([self._key], {"token": self.token})

    @property
    def releasing(self) -> ScriptCall:
        """The call that gives the lease back, for a pipeline."""
        return self._scripts["unlease"].command([self._key], {"token": self.token})


LAYOUT = 2
"""The layout that this version reads and writes.

Releases of one layout may run beside each other. A change that they could not survive makes a new
layout: its release brings what the one before stored over to it here, once, before anything is
read, and reads older forms nowhere else. What b14a1af (23 November 2026) stored has this layout.
"""
_PAGE_OF_ENTRIES, _MAX_PAGE_OF_ENTRIES = 200, 800


class OtherLayout(StoreRefused):
    """Raised at the start if a version has stored data here that this one cannot read."""


async def take_layout(client: RedisClient, keys: Keys) -> None:
    """Do as `check_layout`, and give an empty store our layout."""
    if await check_layout(client, keys):
        await client.call("SET", keys.layout, LAYOUT)


async def check_layout(client: RedisClient, keys: Keys) -> bool:
    """Return whether the store is empty, false if it has our layout; raise `OtherLayout`."""
    stored = int(await client.call("GET", keys.layout) or 0)
    if stored > LAYOUT:
        raise OtherLayout(
            f"the data has layout {stored}, and this version reads layout {LAYOUT}: "
            "start the version that wrote it, or a newer one"
        )
    if stored == LAYOUT:
        return False
    indexes = (*keys.conversations, *keys.scopes)
    if stored or any(await client.pipeline([("ZCARD", index) for index in indexes])):
        raise OtherLayout(
            f"the data has layout {stored or 1}, and this version reads layout {LAYOUT}: start "
            "a version of 23 November 2026 first, which changes it"
        )
    return True


async def stream_entries(
    client: RedisClient,
    stream: str,
    start: str = "-",
    end: str = "+",
    *,
    newest_first: bool = False,
) -> AsyncIterator[tuple[bytes, dict[bytes, bytes]]]:
    """Yield id and fields of each entry of a stream, read in pages, each twice as long up to 800.

    Pages are small, because Redis counts a reply as used memory. Others go on between two pages.
    """
    command, at, last = ("XREVRANGE", end, start) if newest_first else ("XRANGE", start, end)
    count = _PAGE_OF_ENTRIES
    while page := await client.call(command, stream, at, last, "COUNT", count):
        for entry in page:
            yield entry
        if len(page) < count:
            return
        at, count = f"({page[-1][0].decode()}", min(2 * count, _MAX_PAGE_OF_ENTRIES)


async def pages_of_scopes(client: RedisClient, keys: Keys) -> AsyncIterator[Sequence[Scope]]:
    """Give all scopes of the indexes, one shard after the other.

    Each shard is read at one moment. The cursor of a ZSCAN means nothing on another server, so
    after a failover members would be missing.
    """
    for index in (*keys.conversations, *keys.scopes):
        yield [Scope(each.decode()) for each in await client.call("ZRANGE", index, 0, -1)]
