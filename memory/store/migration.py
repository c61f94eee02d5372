"""Gives what an earlier version stored the names of this version, once, before anything reads it.

Layout 1 had names of our own for keys and fields; layout 2 has the field's words. A later layout
gets a step of its own, and older data goes through all of them in turn. One process migrates under
a lease and the others wait. Each scope is renamed by one script, and a repeat changes nothing, so a
process that dies in between is followed by another that starts again. Processes of the earlier
version must be stopped before: they would write the old names again.
"""

import asyncio
from collections.abc import Iterable, Sequence
from time import monotonic

import structlog

from memory.store.client import RedisClient
from memory.store.commands import ScriptCall
from memory.store.errors import StoreRefused
from memory.store.keys import Keys, Scope
from memory.store.scope_index import count_scopes, pages_of_scopes
from memory.store.scope_keys import ScopeKeys
from memory.store.scripts import Scripts
from memory.store.store import NamedLease

log = structlog.get_logger(__name__)

LAYOUT = 2
"""The layout of the names that this version reads and writes."""

_LEASE_MS = 30_000
_LOOK_AGAIN_S = 0.5
_PROGRESS_S = 5.0

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
    shared = [Scope.of_namespace(namespace) for namespace in namespaces]
    while (layout := await stored_layout(client, keys)) < LAYOUT:
        if not await lease.hold():
            await asyncio.sleep(_LOOK_AGAIN_S)
            continue
        try:
            # Another process may have done this step while we waited for the lease.
            if layout == await stored_layout(client, keys):
                await _STEPS[layout](client, keys, scripts, lease, shared)
        finally:
            await lease.release()


async def stored_layout(client: RedisClient, keys: Keys) -> int:
    """Return the layout of what is stored; raise `LayoutTooNew`."""
    stored = int(await client.call("GET", keys.layout) or 1)
    if stored > LAYOUT:
        raise LayoutTooNew(
            f"the data has layout {stored}, and this version reads layout {LAYOUT}: "
            "start the version that wrote it, or a newer one"
        )
    return stored


async def _to_layout_2(
    client: RedisClient,
    keys: Keys,
    scripts: Scripts,
    lease: NamedLease,
    shared: Sequence[Scope],
) -> None:
    """Give keys and fields the field's words."""
    if await _scopes_renamed(client, keys, scripts, lease, shared):
        await _rename_shared_keys(client, keys)
        await client.call("SET", keys.layout, 2)


_STEPS = {1: _to_layout_2}
"""By layout: the function that makes the next layout of it. A process that loses its lease on the
way leaves the layout as it was, and the step is done again."""


async def _scopes_renamed(
    client: RedisClient,
    keys: Keys,
    scripts: Scripts,
    lease: NamedLease,
    shared: Sequence[Scope],
) -> bool:
    """Rename what is stored of every scope; return false if the lease was lost on the way."""
    script, migrated, said_at = scripts["migrate_scope"], 0, monotonic()
    total = await count_scopes(client, keys)
    request = {"meta": _META_FIELDS, "turn": _TURN_FIELDS, "fields": _FIELD_PREFIXES}
    async for scopes in pages_of_scopes(client, keys, shared):
        names = [keys.scope(scope) for scope in scopes]
        calls: list[ScriptCall] = [
            script.command((*each.all, _old_dead_letters(each)), request) for each in names
        ]
        await client.pipeline(calls)
        migrated += len(scopes)
        if monotonic() - said_at > _PROGRESS_S:
            said_at = monotonic()
            log.info("migrating stored data", scopes=migrated, of=total)
        if not await lease.hold():
            return False
    if migrated > len(shared):  # namespaces are visited even in an empty store
        log.info("stored data migrated", layout=LAYOUT, scopes=migrated)
    return True


def _old_dead_letters(names: ScopeKeys) -> str:
    return names.dead_letters.removesuffix("_letters")


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
