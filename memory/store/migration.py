"""Gives what an earlier version stored the names of this version, once, before anything reads it.

Layout 1 had names of our own for keys and fields; layout 2 has the field's words. One process
migrates under a lease and the others wait. Each scope is renamed by one script, and a repeat
changes nothing, so a process that dies in between is followed by another that starts again.
Processes of the earlier version must be stopped before: they would write the old names again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

import structlog

from memory.store.client import RedisClient
from memory.store.commands import ScriptCall
from memory.store.errors import StoreRefused
from memory.store.keys import SHARDS, Keys, Scope, ScopeKeys
from memory.store.scripts import Scripts
from memory.store.store import NamedLease

log = structlog.get_logger(__name__)

LAYOUT = 2
"""The layout of the names that this version reads and writes."""

_LEASE_MS = 30_000
_LOOK_AGAIN_S = 0.5
_PAGE = 100

_META_FIELDS = {
    "bell": "wake_up",
    "born": "generation",
    "sitting": "session",
    "vec_stamp": "vector_fingerprint",
    "rvec_stamp": "record_vector_fingerprint",
    "words_only": "lexical_only",
}
_TURN_FIELDS = {"room": "ballast", "by": "begun_by"}
_FIELD_PREFIXES = {
    "w:": "watermark:",
    "f:": "failures:",
    "d:": "digest:",
    "t:": "tool_writes:",
    "t@": "written:",
    "p:": "question:",
    "b:": "kept:",
    "doc:": "document:",
}
_CAPACITY_FIELDS = {
    "words_only": "lexical_only",
    "told_vectors": "reported_vectors",
    "told_messages": "reported_messages",
    "told:filling": "reported:filling",
    "told:full": "reported:full",
    "told:dropped": "reported:dropped",
}


class LayoutTooNew(StoreRefused):
    """Raised at the start if a newer version has stored data here that this one cannot read."""


async def migrate(
    client: RedisClient, keys: Keys, scripts: Scripts, namespaces: Iterable[str] = ()
) -> None:
    """Return when what is stored has the layout of this version.

    `namespaces` of documents are migrated even if the index does not name them any more. Raise
    `LayoutTooNew`, or `StoreError` if the store fails; then the next start goes on.
    """
    lease = NamedLease(scripts, keys.migrator, _LEASE_MS)
    while await _layout(client, keys) < LAYOUT:
        if not await lease.hold():
            await asyncio.sleep(_LOOK_AGAIN_S)
            continue
        try:
            shared = [Scope.of_namespace(namespace) for namespace in namespaces]
            if await _scopes_renamed(client, keys, scripts, lease, shared):
                await _rename_shared_keys(client, keys)
                await client.call("SET", keys.layout, LAYOUT)
        finally:
            await lease.release()


async def _layout(client: RedisClient, keys: Keys) -> int:
    stored = int(await client.call("GET", keys.layout) or 1)
    if stored > LAYOUT:
        raise LayoutTooNew(
            f"the data has layout {stored}, and this version reads layout {LAYOUT}: "
            "start the version that wrote it, or a newer one"
        )
    return stored


async def _scopes_renamed(
    client: RedisClient,
    keys: Keys,
    scripts: Scripts,
    lease: NamedLease,
    shared: Sequence[Scope],
) -> bool:
    """Rename what is stored of every scope; return false if the lease was lost on the way."""
    script, migrated = scripts["migrate_scope"], 0
    request = {"meta": _META_FIELDS, "turn": _TURN_FIELDS, "fields": _FIELD_PREFIXES}
    async for scopes in _pages(client, keys, shared):
        names = [keys.scope(scope) for scope in scopes]
        calls: list[ScriptCall] = [
            script.command((*each.all, _old_dead_letters(each)), request) for each in names
        ]
        await client.pipeline(calls)
        migrated += len(scopes)
        if not await lease.hold():
            return False
    if migrated > len(shared):  # namespaces are visited even in an empty store
        log.info("stored data migrated", layout=LAYOUT, scopes=migrated)
    return True


def _old_dead_letters(names: ScopeKeys) -> str:
    return names.dead_letters.removesuffix("_letters")


async def _pages(
    client: RedisClient, keys: Keys, shared: Sequence[Scope]
) -> AsyncIterator[Sequence[Scope]]:
    """Give all scopes that the indexes name, in pages, then the `shared` ones."""
    indexes = [
        index(shard) for index in (keys.conversations, keys.scopes) for shard in range(SHARDS)
    ]
    cursors = dict.fromkeys(indexes, 0)
    while cursors:
        asked = [("ZSCAN", index, cursor, "COUNT", _PAGE) for index, cursor in cursors.items()]
        for index, (cursor, found) in zip(
            tuple(cursors), await client.pipeline(asked), strict=True
        ):
            if found:
                yield [Scope(member.decode()) for member, _ in found]
            cursors[index] = int(cursor)
            if not cursors[index]:
                del cursors[index]
    if shared:
        yield shared


async def _rename_shared_keys(client: RedisClient, keys: Keys) -> None:
    """Move the keys of the whole bot. On a Cluster the names have different slots: no `RENAME`.

    Wake-ups and ballast are not moved. Each start wakes up the conversations with waiting messages,
    and the next look at the capacity makes a new ballast.
    """
    dead_letters, capacity = keys.prefix + "deadletters", keys.prefix + "plan"
    for member, score in await client.call("ZRANGE", dead_letters, 0, -1, "WITHSCORES"):
        await client.call("ZADD", keys.dead_letters, "NX", score, member)
    for name, value in (await client.call("HGETALL", capacity)).items():
        new = _CAPACITY_FIELDS.get(name.decode(), name.decode())
        await client.call("HSETNX", keys.capacity, new, value)
    old = (dead_letters, capacity, keys.prefix + "doorbell", keys.prefix + "reserve")
    await client.pipeline([("UNLINK", name) for name in old])
