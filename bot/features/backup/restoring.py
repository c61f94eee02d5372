"""Restores files of backups into a store, which may be empty and may be in use.

A scope is first written under staged keys. Then one step moves all of it to the scope's keys. That
step refuses if the scope has content or if something was erased there meanwhile. So running bots
see all of a scope or nothing, nothing newer is overwritten, and a restore that died is run again.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from bot.features.backup.backup_file import BackupReader, BackupRefused, FileRecord, damaged
from bot.features.backup.erased_since import left_of, people_in
from bot.features.backup.erasures import Erasures, journal_mark, merge_journals, read_journal
from bot.features.backup.saving import (
    ACCESS_PARTS,
    HASHES,
    LUA,
    STREAMS,
    Progress,
    StoredScope,
    from_file,
)
from memory.store.commands import Command
from memory.store.keys import Scope
from memory.store.store import LAYOUT, Scripts, Store
from memory.work.item import WorkItem
from memory.work.items import look_at

_STAGED_S = 3_600
"""If a restore dies, what it has staged expires after this time."""
_PAGE = 100
_KINDS = {"scope", *STREAMS, "scope_end", "journal", "access", "end"}

Outcome = Literal["restored", "done", "kept", "forgotten", "expired"]
"""What became of a scope. `done`: an earlier run has restored it from this file. `kept`: it has
content of its own, or was cleared since. `forgotten`: all of it was erased since. `expired`: nobody
has written there for so long that it would have been forgotten by now."""


class Restoring:
    """Restores into one bot's store. An erased state is learned again from `tail` messages."""

    def __init__(self, store: Store, tail: int) -> None:
        self._store = store
        self._client = store.client
        self._scripts = Scripts(store.client, LUA)
        self._tail = tail
        self._erasures = Erasures({}, {})
        self._mark = (0, 0.0)

    async def restore(
        self, readers: Sequence[BackupReader], total: int, progress: Progress
    ) -> Counter[Outcome]:
        """Restore files that `check_files` has accepted, the newest first; raise `StoreError`.

        The journals of all files hold for all of them, and for the store from now on.
        """
        counts: Counter[Outcome] = Counter()
        readers = sorted(readers, key=lambda each: -each.header.created_at)
        journals = Erasures({}, {})
        for record in (each for reader in readers for each in reader.records()):
            if record["kind"] == "journal":
                journals.add(record["secrets"], record["entries"])
            elif record["kind"] == "access":
                await self._let_in(record)
        await merge_journals(self._store, journals)
        for reader in readers:
            records = reader.records()
            for head in (each for each in records if each["kind"] == "scope"):
                counts[await self._restore(from_file(head, records), reader.header.id)] += 1
                progress(counts.total(), total)
        return counts

    async def _let_in(self, access: FileRecord) -> None:
        """Restore who may come in and who may not; what was decided later stays."""
        key = self._store.keys.access
        known: set[str] = set()
        for part in ACCESS_PARTS:
            known |= {id_.decode() for id_ in await self._client.call("HKEYS", key(part))}
        new = [
            ("HSET", key(part), id_, value)
            for part in ACCESS_PARTS
            for id_, value in access[part].items()
            if id_ not in known
        ]
        if new:
            await self._client.pipeline([*new, ("INCR", key("version"))])

    async def _restore(self, stored: StoredScope, backup: str) -> Outcome:
        scope = Scope(stored.tag)
        while True:
            mark = await journal_mark(self._store)
            if mark != self._mark:
                self._erasures, self._mark = await read_journal(self._store), mark
            now = await self._client.server_time()
            ttl_s = 0.0  # for ever
            if stored.ttl_s:
                ttl_s = min(stored.ttl_s, self._store.ttl_s) - (now - stored.version.read_at)
                if ttl_s <= 0:
                    return "expired"
            left = left_of(stored, self._erasures, self._tail, now)
            if left is None or (stored.has_content and not left.has_content):
                return "forgotten"
            epoch, erasure, restored_from = await self._client.call(
                "HMGET", self._store.keys.scope(scope).meta, "epoch", "erasure", "restored"
            )
            is_done = restored_from == backup.encode()
            if int(epoch or 0) > stored.version.epoch and not is_done:
                return "kept"
            request = {
                "backup": backup,
                "epoch": (epoch or b"0").decode(),
                "erasure": (erasure or b"0").decode(),
                "ttl_ms": round(ttl_s * 1000),
            }
            outcome = await self._put(scope, left, request, is_done=is_done)
            if outcome != "changed":
                return outcome

    async def _put(
        self, scope: Scope, left: StoredScope, request: Mapping[str, object], *, is_done: bool
    ) -> Outcome | Literal["changed"]:
        """Write a scope under staged keys, then move it to its own in one step.

        `is_done`: an earlier run has moved it. That run may have died before it wrote the indexes,
        so they are written again.
        """
        keys, client = self._store.keys, self._client
        names = keys.scope(scope)
        staged = {name: keys.restoring(scope, name) for name in (*STREAMS, *HASHES)}
        if not is_done:
            content = (names.log, names.learned, names.records, names.work, names.turn)
            if await client.call("EXISTS", *content):
                return "kept"
            await client.call("UNLINK", *staged.values())
            for page in _pages(left, staged):
                expiry = [("EXPIRE", name, _STAGED_S) for name in {str(each[1]) for each in page}]
                await client.pipeline([*page, *expiry])
        # Erasures find a scope by these indexes. So they are written first, and then the journal is
        # looked at: it has every erasure that began before, and a later one finds the scope.
        await client.pipeline(self._indexed(scope, left))
        outcome: Outcome | Literal["changed"] = "changed"
        if await journal_mark(self._store) == self._mark:
            names_of_all = (*names, *staged.values())
            outcome = (await self._scripts["restore_scope"](names_of_all, request)).decode()
        if outcome in ("kept", "changed"):
            await client.call("UNLINK", *staged.values())
        else:
            # A worker that looked too early may have removed an item from the index.
            commands = self._indexed(scope, left)
            if left.is_due:
                commands.append(("ZADD", keys.learning, "NX", int(left.version.read_at), scope.tag))
            if left.topic_named_by:
                named = "SET", keys.topic_name(scope), left.topic_named_by
                commands.append((*named, "EX", self._store.ttl_s, "NX"))
            await client.pipeline(commands)
        return outcome

    def _indexed(self, scope: Scope, left: StoredScope) -> list[Command]:
        keys, at_ms = self._store.keys, round(left.version.read_at * 1000)
        commands: list[Command] = [
            ("ZADD", keys.index_of(scope), "GT", int(left.active_at), scope.tag)
        ]
        if scope.is_conversation:
            # `0|<ms>` is older than every update, so that the next message writes its own.
            commands += [
                ("HSETNX", keys.person(person), scope.tag, f"0|{at_ms}")
                for person in sorted(people_in(left))
            ]
        for id_, value in left.work.items():
            item = WorkItem.of_stored(id_.decode(), value)
            commands.append(look_at(keys.work, scope, item.id, item.due, self._client.now()))
        return commands


def check_files(readers: Sequence[BackupReader], bot_id: int, *, is_other_bot: bool) -> int:
    """Read all files to their ends before anything is written; return the number of scopes.

    Raise `BackupRefused`. `is_other_bot`: files of another bot are allowed.
    """
    scopes, journals = 0, Erasures({}, {})
    for reader in readers:
        header = reader.header
        if header.layout != LAYOUT:
            raise BackupRefused(
                f"the file has data of layout {header.layout}, and this version restores layout "
                f"{LAYOUT}: restore it with the version that wrote it, then start this one"
            )
        if header.bot_id != bot_id and not is_other_bot:
            raise BackupRefused(
                f"the file is of the bot {header.bot_id}, and this token of the bot {bot_id}: "
                "give --other-bot if you mean it"
            )
        last: FileRecord = {}
        records = map(_known, reader.records())
        try:
            for last in records:
                if last["kind"] == "scope":
                    scopes += 1
                    from_file(last, records)
                elif last["kind"] == "journal":
                    journals.add(last["secrets"], last["entries"])
        except (AttributeError, KeyError, TypeError, ValueError):
            raise damaged() from None
        if last.get("kind") != "end":
            raise damaged()
    if not journals.is_sound():
        raise damaged()
    return scopes


def _known(record: FileRecord) -> FileRecord:
    if record["kind"] not in _KINDS:
        raise BackupRefused(
            f"the file holds {record['kind']!r:.40}, which this version does not know: restore it "
            "with the version that wrote it, or a newer one"
        )
    return record


def _pages(left: StoredScope, staged: Mapping[str, str]) -> Iterator[list[Command]]:
    commands: list[Command] = []
    for name in HASHES:
        fields = getattr(left, name).items()
        commands += [("HSET", staged[name], field, value) for field, value in fields]
    for name in STREAMS:
        for number, row in getattr(left, name):
            pairs = (part for pair in row.items() for part in pair)
            commands.append(("XADD", staged[name], f"{number}-0", *pairs))
    for first in range(0, len(commands), _PAGE):
        yield commands[first : first + _PAGE]
