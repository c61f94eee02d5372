"""Writes a backup of one bot while the bot may be running.

Each scope is read as it was at one moment: first, in one step, its fields and how far its streams
go, then the streams up to there. Streams only grow at their end. If something was erased meanwhile,
or vectors of another model came, the scope is read again.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import orjson

from memory.backup.backup_file import BackupHeader, BackupRefused, BackupWriter
from memory.backup.stored_scope import ACCESS_PARTS, META_LEFT_OUT, STREAMS, Row, StoredScope
from memory.scopes.log import paired, seq_of
from memory.store.client import RedisClient
from memory.store.journal import Version
from memory.store.keys import Keys, Scope
from memory.store.migration import LAYOUT
from memory.store.scope_index import count_scopes, pages_of_scopes
from memory.store.store import Store

_PAGE = 200
_VERSIONS = ("epoch", "erasure", "vector_fingerprint", "record_vector_fingerprint")


@dataclass(slots=True)
class SavedCounts:
    """How much a backup holds."""

    scopes: int = 0
    messages: int = 0
    erasures: int = 0


Progress = Callable[[int, int], None]
"""Called with the number of scopes that are done, and with about how many there are."""


class Saving:
    """Makes backups of one bot's store. `shared` are the namespaces of the operator's documents."""

    def __init__(self, store: Store, bot_id: int, shared: Sequence[Scope] = ()) -> None:
        self._store = store
        self._client = store.client
        self._bot_id = bot_id
        self._shared = shared

    async def header(self, *, is_journal_only: bool) -> BackupHeader:
        """Return the header of a new file; raise `BackupRefused` if another version stored this."""
        stored = await self._client.call("GET", self._store.keys.layout)
        if int(stored or LAYOUT) != LAYOUT or (
            not stored and await count_scopes(self._client, self._store.keys)
        ):
            raise BackupRefused(
                "another version of the bot has stored this data: make the backup with that "
                "version, or start this one first"
            )
        now = await self._client.server_time()
        return BackupHeader(self._bot_id, LAYOUT, now, is_journal_only=is_journal_only)

    async def save(
        self, writer: BackupWriter, *, is_journal_only: bool, progress: Progress
    ) -> SavedCounts:
        """Write all records of a file; raise `StoreError`."""
        counts = SavedCounts()
        if not is_journal_only:
            total = await count_scopes(self._client, self._store.keys)
            async for scope in self._scopes():
                stored = await self._read(scope)
                if stored.has_content or stored.meta:
                    counts.scopes += 1
                    counts.messages += len(stored.log)
                    for record in stored.to_file():
                        writer.write(record)
                progress(counts.scopes, max(total, counts.scopes))
        # The journal comes last, so that it also has what was erased while scopes were read.
        erasures = await self._store.journal.read()
        counts.erasures = len(erasures.entries)
        writer.write({"kind": "journal", "secrets": erasures.secrets, "entries": erasures.entries})
        writer.write({"kind": "access", **await self._access()})
        writer.write({"kind": "end", "scopes": counts.scopes, "messages": counts.messages})
        return counts

    async def _access(self) -> dict[str, dict[str, str]]:
        """Return who may come in and who may not, without names."""
        found = {}
        for part in ACCESS_PARTS:
            stored = await self._client.call("HGETALL", self._store.keys.access(part))
            found[part] = {id_.decode(): value.decode() for id_, value in stored.items()}
        return found

    async def note_done(self, counts: SavedCounts) -> None:
        """Store when the last whole backup was made, for `python -m bot check`."""
        now = await self._client.server_time()
        fields = ("at", f"{now:.0f}", "scopes", counts.scopes)
        await self._client.call("HSET", self._store.keys.last_backup, *fields)

    async def _scopes(self) -> AsyncIterator[Scope]:
        seen: set[Scope] = set()
        async for page in pages_of_scopes(self._client, self._store.keys, self._shared):
            for scope in page:
                if scope not in seen:
                    seen.add(scope)
                    yield scope

    async def _read(self, scope: Scope) -> StoredScope:
        """Return a scope as it was at one moment."""
        keys = self._store.keys
        names = keys.scope(scope)
        while True:
            head, meta, learned, reminders = await self._store.scripts["snapshot_scope"](
                names.all, {}
            )
            ends = orjson.loads(head)
            fields = paired(meta)
            streams = {name: await self._rows(getattr(names, name), ends[name]) for name in STREAMS}
            after, active_at, due, named_by = await self._client.pipeline(
                [
                    ("HMGET", names.meta, *_VERSIONS),
                    ("ZSCORE", keys.index_of(scope), scope.tag),
                    ("ZSCORE", keys.learning, scope.tag),
                    ("GET", keys.topic_name(scope)),
                ]
            )
            if after == [fields.get(name.encode()) for name in _VERSIONS]:
                break
        return StoredScope(
            tag=scope.tag,
            version=Version(int(after[0] or 0), int(after[1] or 0), ends["at"] / 1000),
            ttl_s=max(ends["ttl"], 0) / 1000,
            active_at=float(active_at or ends["at"] / 1000),
            is_due=due is not None,
            topic_named_by=(named_by or b"").decode(),
            meta=_kept(fields),
            learned=paired(learned),
            reminders=paired(reminders),
            **streams,
        )

    async def _rows(self, stream: str, end: str) -> list[Row]:
        rows: list[Row] = []
        start = b"-"
        while end != "0-0":
            page = await self._client.call("XRANGE", stream, start, end, "COUNT", _PAGE)
            rows += [(seq_of(entry), fields) for entry, fields in page]
            if len(page) < _PAGE:
                break
            start = b"(" + page[-1][0]
        return rows


def _kept(meta: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the fields of `meta` that a backup holds."""
    left_out = tuple(each.encode() for each in META_LEFT_OUT)
    exact = {each for each in left_out if not each.endswith(b":")}
    prefixes = tuple(each for each in left_out if each.endswith(b":"))
    return {
        name: value
        for name, value in meta.items()
        if name not in exact and not name.startswith(prefixes)
    }


async def last_backup(client: RedisClient, keys: Keys) -> float:
    """Return when the last whole backup was made (Unix seconds), 0 for never."""
    return float(await client.call("HGET", keys.last_backup, "at") or 0)
