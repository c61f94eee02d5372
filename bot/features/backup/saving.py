"""Writes a backup of one bot while the bot may be running: each scope as it was at one moment.

The README says how, and why keys are read as fields and entries, not with DUMP.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import Field, TypeAdapter

from bot.features.backup.backup_file import BackupWriter, FileRecord
from bot.features.backup.erasures import Erasures, read_journal
from memory.erasure.jobs import Job
from memory.scopes.log import paired, seq_of
from memory.store.client import RedisClient
from memory.store.commands import Command
from memory.store.errors import StoreError
from memory.store.journal import person_name
from memory.store.keys import TAG_FIELD, Keys, Scope
from memory.store.store import Scripts, Store, pages_of_scopes, stream_entries

LUA = Path(__file__).parent / "lua"  # our scripts

_HASHES_IN_FILE = {"meta": "meta", "learned": "learned", "work": "reminders"}
HASHES = tuple(_HASHES_IN_FILE)
STREAMS = ("log", "vectors", "records", "record_vectors")
"""The keys of a scope that a backup holds. They are content, or say how it is numbered.

Not held: the mailbox, the open turn, the lease, dead letters, questions, words off the record.
"""
ACCESS_PARTS = ("admitted", "refused")
"""The parts of the access list that a backup holds; a file with only the journal has them, too."""

META_LEFT_OUT = (
    *(b"wake_up", b"committed", b"committed_exchange", b"committed_first", b"closed"),
    *(b"off_record", b"off_record_said", b"off_record_ended", b"lexical_only"),
    *(b"look", b"look_at", b"stopped_by", b"stopped_at", b"met:", b"sent:", b"newest:"),
)
"""Fields of `meta` that no file holds: about running turns, sessions, and what intake counts. A
colon ends what several names begin with."""

_PLAIN = ("tag", "read_at", "ttl_s", "active_at", "is_due", "topic_named_by")
"""Fields of a scope that a file holds as they are."""
_ROWS, _ENTRIES = 200, 1_000
"""How many rows of a stream, and entries of the journal, one record has: larger records could make
a chunk that no reader takes."""

Row = tuple[
    Annotated[int, Field(gt=0, lt=2**53)], Annotated[dict[bytes, bytes], Field(min_length=1)]
]
"""One entry of a stream: its number and its fields."""
_Seconds = Annotated[float, Field(ge=0, lt=2**40)]

_VERSIONS = ("epoch", "erasure", "vector_fingerprint", "record_vector_fingerprint")


@dataclass(frozen=True, slots=True)
class StoredScope:
    """All that a backup keeps of a scope, as it was at one moment. Times are Unix seconds."""

    tag: str
    read_at: _Seconds
    ttl_s: _Seconds  # seconds until it expires, 0 for never
    active_at: _Seconds  # the last activity, its score in the index
    is_due: bool  # learning is planned
    topic_named_by: str
    meta: Mapping[bytes, bytes]
    learned: Mapping[bytes, bytes]
    work: Mapping[bytes, bytes]
    log: Sequence[Row] = ()
    vectors: Sequence[Row] = ()
    records: Sequence[Row] = ()
    record_vectors: Sequence[Row] = ()

    @property
    def has_content(self) -> bool:
        """Whether it has messages, records, learned fields or work items, not only `meta`."""
        return bool(self.log or self.records or self.learned or self.work)

    @property
    def versions(self) -> tuple[int, int]:
        """Its epoch and its erasure version."""
        return int(self.meta.get(b"epoch", 0)), int(self.meta.get(b"erasure", 0))

    def to_file(self) -> Iterator[FileRecord]:
        """Yield the records of a file; `from_file` puts them together again."""
        yield {
            "kind": "scope",
            **{name: getattr(self, name) for name in _PLAIN},
            **{stored: _texts(getattr(self, name)) for name, stored in _HASHES_IN_FILE.items()},
        }
        for name in STREAMS:
            rows = getattr(self, name)
            for first in range(0, len(rows), _ROWS):
                page = [(number, _texts(row)) for number, row in rows[first : first + _ROWS]]
                yield {"kind": name, "rows": page}
        yield {"kind": "scope_end"}


_SCOPE = TypeAdapter(StoredScope)
_LAST = "last_backup"  # behind the prefix: the key with the time of the last whole backup


def from_file(head: FileRecord, rest: Iterator[FileRecord]) -> StoredScope:
    """Return the scope that begins with `head`; take its other records from `rest`.

    Raise `KeyError`, `TypeError` or `ValueError` if a record has another form.
    """
    streams: dict[str, Any] = {name: [] for name in STREAMS}
    for record in rest:
        if record["kind"] == "scope_end":
            break
        streams[record["kind"]] += [(number, _bytes(row)) for number, row in record["rows"]]
    return _SCOPE.validate_python(
        {
            **{name: head[name] for name in _PLAIN},
            **{name: _bytes(head[stored]) for name, stored in _HASHES_IN_FILE.items()},
            **streams,
        }
    )


def _texts(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return bytes in a form that JSON has: each byte as the character of its number."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in fields.items()}


def _bytes(fields: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.encode("latin-1"): value.encode("latin-1") for name, value in fields.items()}


Progress = Callable[[int, int], None]  # gets how many scopes are done, and of about how many


class Saving:
    """Makes backups of one bot's store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._client = store.client
        self._scripts = Scripts(store.client, LUA)

    async def save(
        self, writer: BackupWriter, *, is_journal_only: bool, progress: Progress
    ) -> Counter[str]:
        """Write all records; return how many there are. Raise `StoreError`, `BackupRefused`."""
        counts: Counter[str] = Counter()
        if not is_journal_only:
            keys = self._store.keys
            metas = self._client.keys_like(f"{keys.prefix}{{*}}:meta")
            # Not only by the indexes: the new chat of a group that moved is in none, nor are the
            # operator's documents. Once each, because a page or a scan may name a scope again.
            pages = pages_of_scopes(self._client, keys)
            scopes = dict.fromkeys([scope async for page in pages for scope in page])
            scopes |= {Scope(each.split("{")[1].split("}")[0]): None async for each in metas}
            for scope in scopes:
                stored = await self._read(scope)
                if stored.has_content or stored.meta:
                    counts["scopes"] += 1
                    counts["messages"] += len(stored.log)
                    for record in stored.to_file():
                        writer.write(record, of=stored.tag)
                progress(counts["scopes"], len(scopes))
        erasures = await self._journal()
        counts["erasures"] = len(erasures.entries)
        entries = [*erasures.entries.items()]
        for first in range(0, max(1, len(entries)), _ENTRIES):
            page = dict(entries[first : first + _ENTRIES])
            writer.write({"kind": "journal", "secrets": erasures.secrets, "entries": page})
        access = {}
        for part in ACCESS_PARTS:
            found = await self._client.call("HGETALL", self._store.keys.access(part))
            access[part] = {id_.decode(): value.decode() for id_, value in found.items()}
        writer.write({"kind": "access", **access})
        writer.write({"kind": "end", "scopes": counts["scopes"], "messages": counts["messages"]})
        return counts

    async def note_done(self) -> None:
        """Store when the last whole backup was made, for `python -m bot check`."""
        with suppress(StoreError):  # the file is whole; only `check` shows an older time
            now = await self._client.server_time()
            key = f"{self._store.keys.prefix}{_LAST}"
            await self._client.call("HSET", key, "at", f"{now:.0f}")

    async def _journal(self) -> Erasures:
        """Return the journal, with the erasures of unfinished jobs as if they were done.

        These are not written to the store: Redis may be full, and a worker will write its own.
        """
        # Scopes first, then jobs, then the journal: it has what a worker erases meanwhile.
        unfinished = [each async for each in self._unfinished()]
        erasures, now = await read_journal(self._store), await self._client.server_time()
        left = [
            (name, entry)
            for name, entry, cut_at in unfinished
            if not erasures.is_cleared_since(name, cut_at)
        ]
        erasures.note(left, now)
        return erasures

    async def _unfinished(self) -> AsyncIterator[tuple[str, str, float]]:
        """Yield what unfinished jobs erase: a name, its entry, and when it was confirmed."""
        store, clears = self._store, list[tuple[Job, int]]()
        async for _, stored in stream_entries(self._client, store.keys.jobs):
            id_ = stored[TAG_FIELD.encode()].decode()
            fields = await self._client.call("HGETALL", store.keys.job(id_))
            if not fields or b"finished" in fields:
                continue
            job = Job.of_stored(id_, fields)
            if job.kind == "forget":
                yield person_name(job.target), f"p|{job.cut_at:.3f}", job.cut_at
                continue
            [moved_from] = await store.read_meta(Scope.of_chat(job.target), "moved_from")
            clears.append((job, Scope(moved_from.decode()).chat_id if moved_from else job.target))
        if not clears:
            return
        async for page in pages_of_scopes(self._client, store.keys):
            meant = [(job, each) for each in page for job, chat in clears if job.clears(each, chat)]
            asked = list[Command]()
            for job, scope in meant:
                names = store.keys.scope(scope)
                asked += [("HMGET", names.meta, "epoch", "generation", "moved_from")]
                # The epoch once more, because a worker may erase in between.
                asked += [("HEXISTS", names.confirm, job.id), ("HGET", names.meta, "epoch")]
            parts = (asked[first : first + 300] for first in range(0, len(asked), 300))
            found = [each for part in parts for each in await self._client.pipeline(part)]
            answers = zip(meant, found[::3], found[1::3], found[2::3], strict=True)
            for (job, scope), (epoch, generation, is_alias), is_erased, later in answers:
                if not is_alias:  # an alias holds nothing
                    after = int(later or 0) if is_erased else int(epoch or 0) + 1
                    yield scope.tag, f"c|{after}|{int(generation or 0) + after}", job.cut_at

    async def _read(self, scope: Scope) -> StoredScope:
        keys = self._store.keys
        names = keys.scope(scope)
        while True:
            head, meta, learned, work = await self._scripts["snapshot_scope"](names, {})
            ends = orjson.loads(head)
            fields = paired(meta)
            streams: dict[str, list[Row]] = {name: [] for name in STREAMS}
            for name, rows in streams.items():
                entries = stream_entries(self._client, getattr(names, name), end=ends[name])
                rows += [(seq_of(id_), row) async for id_, row in entries]
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
            read_at=ends["at"] / 1000,
            ttl_s=max(ends["ttl"], 0) / 1000,
            active_at=float(active_at or ends["at"] / 1000),
            is_due=due is not None,
            topic_named_by=(named_by or b"").decode(),
            meta={
                name: value
                for name, value in fields.items()
                if not {name, name[: name.find(b":") + 1]} & {*META_LEFT_OUT}
            },
            learned=paired(learned),
            work=paired(work),
            **streams,
        )


async def last_backup(client: RedisClient, keys: Keys) -> float:
    """Return when the last whole backup was made (Unix seconds), 0 for never."""
    return float(await client.call("HGET", f"{keys.prefix}{_LAST}", "at") or 0)
