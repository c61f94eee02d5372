"""Restores files of backups into a store, which may be empty and may be in use.

A scope is first written under staged keys. Then one step moves all of it to the scope's keys; the
README says when it refuses. So running bots see all of a scope or nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from secrets import token_hex
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from bot.features.backup.backup_file import BackupReader, BackupRefused, FileRecord, damaged
from bot.features.backup.erased_since import left_of, people_in, read_through
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
from memory.store.commands import Command, Request
from memory.store.keys import Scope
from memory.store.store import LAYOUT, Scripts, Store
from memory.work.item import WorkItem
from memory.work.items import look_at

_STAGED_S = 120  # what is staged expires so long after its last write: no erasure looks there
_PAGE = 100
_MAX_LOSSES = 3
_KINDS = {"scope", *STREAMS, "scope_end", "journal", "access", "end"}
_JOURNAL = TypeAdapter(tuple[dict[str, str], dict[str, float]])
_Id = Annotated[str, Field(pattern=r"^-?\d{1,19}$")]
_ACCESS = TypeAdapter(dict[str, dict[_Id, str]])

Outcome = Literal["restored", "done", "kept", "forgotten", "expired"]
"""What became of a scope. `done`: an earlier run has restored it from this file. `kept`: it has
content of its own, or was cleared since. `forgotten`: all of it was erased since. `expired`: its
time to live has passed since the backup, or the backup is older than the time to live here."""

_Again = Literal["changed", "lost"]
"""Why a scope is staged again: something was erased, or not all that was staged is still there."""


@dataclass(slots=True)
class Contents:
    """What all files hold together: journals, access list, and the number of scopes."""

    scopes: int = 0
    journals: Erasures = field(default_factory=lambda: Erasures({}, {}))
    # By person: a part of the access list, and the value there. The newest file counts.
    access: dict[str, tuple[str, str]] = field(default_factory=dict)


class Restoring:
    """Restores into one bot's store. An erased state is learned again from `tail` messages."""

    def __init__(self, store: Store, tail: int) -> None:
        self._store = store
        self._client = store.client
        self._scripts = Scripts(store.client, LUA)
        self._tail = tail
        self._erasures = Erasures({}, {})
        self._mark = (0, 0.0)
        self._run = token_hex(8)  # another restore may be running

    async def restore(
        self, readers: Sequence[BackupReader], contents: Contents, progress: Progress
    ) -> Counter[Outcome]:
        """Restore files that `check_files` has accepted; raise `StoreError`.

        The journals of all files hold for all of them, and for the store from now on.
        """
        counts: Counter[Outcome] = Counter()
        await self._journal()  # may refuse, so it comes before anything is written
        # Who may come in and who may not. What was decided here stays.
        keys = [self._store.keys.access(part) for part in (*ACCESS_PARTS, "version")]
        await self._scripts["restore_access"](keys, contents.access)
        await merge_journals(self._store, contents.journals)
        for reader in readers:
            records = reader.records()
            for head in (each for each in records if each["kind"] == "scope"):
                counts[await self._restore(from_file(head, records), reader.header.id)] += 1
                progress(counts.total(), contents.scopes)
        return counts

    async def _restore(self, stored: StoredScope, backup: str) -> Outcome:
        scope = Scope(stored.tag)
        names, losses = self._store.keys.scope(scope), 0
        while True:
            now = await self._client.server_time()
            # What never expires has this limit, too: the journal keeps erasures only for so long.
            left_s = min(stored.ttl_s or inf, self._store.ttl_s) - (now - stored.read_at)
            if left_s <= 0:
                return "expired"
            left = left_of(stored, await self._journal(), self._tail, now)
            if left is None or (stored.has_content and not left.has_content):
                return "forgotten"
            asked: list[Command] = [
                ("HMGET", names.meta, "epoch", "erasure", "restored"),
                ("EXISTS", names.log, names.learned, names.records, names.work, names.turn),
            ]
            (epoch, erasure, restored), has_content = await self._client.pipeline(asked)
            if restored == backup.encode():
                await self._finish(scope, left)
                return "done"
            if has_content or int(epoch or 0) > stored.versions[0]:
                return "kept"
            request = {
                "backup": backup,
                "epoch": (epoch or b"0").decode(),
                "erasure": (erasure or b"0").decode(),
                "ttl_ms": max(1, round(left_s * 1000)) if stored.ttl_s else 0,
                "staged": {name: len(getattr(left, name)) for name in (*HASHES, *STREAMS)},
            }
            outcome = await self._put(stored, left, now, request)
            if outcome == "lost":
                losses += 1
                if losses == _MAX_LOSSES:
                    raise BackupRefused(
                        "Redis loses what was just written: set maxmemory-policy to noeviction, "
                        "then run the restore again"
                    )
            elif outcome != "changed":
                return outcome

    async def _journal(self) -> Erasures:
        mark = await journal_mark(self._store)
        if mark != self._mark:
            self._erasures, self._mark = await read_journal(self._store), mark
            if not self._erasures.is_known():
                raise _unknown("the journal of erasures in the store holds an entry")
        return self._erasures

    async def _put(
        self, stored: StoredScope, left: StoredScope, now: float, request: Request
    ) -> Outcome | _Again:
        """Write a scope under staged keys, then move it to its own in one step."""
        scope, keys, client = Scope(stored.tag), self._store.keys, self._client
        before = self._erasures
        staged = {name: keys.restoring(scope, self._run, name) for name in (*HASHES, *STREAMS)}
        expiry = [("EXPIRE", name, _STAGED_S) for name in staged.values()]
        commands = [*_writes(left, staged)]
        for first in range(0, len(commands), _PAGE):
            await client.pipeline([*commands[first : first + _PAGE], *expiry])
        # Erasures find a scope by these indexes. So they are written first, and then the journal is
        # read: it has every erasure that began before, and a later one finds the scope. An erasure
        # of something else changes nothing here; there may always be a new one.
        await client.pipeline(self._indexed(scope, left))
        outcome: Outcome | _Again = "changed"
        journal = await self._journal()
        if journal is before or left_of(stored, journal, self._tail, now) == left:
            names = (*keys.scope(scope), *staged.values())
            outcome = (await self._scripts["restore_scope"](names, request)).decode()
        if outcome != "restored":
            await client.call("UNLINK", *staged.values())
        if outcome in ("restored", "done"):
            await self._finish(scope, left)
        return outcome

    async def _finish(self, scope: Scope, left: StoredScope) -> None:
        """Write what follows the move of a scope; an earlier restore may have died before this."""
        keys = self._store.keys
        # A worker that looked too early may have removed an item from the index.
        commands = self._indexed(scope, left)
        if left.is_due:
            commands.append(("ZADD", keys.learning, "NX", int(left.read_at), scope.tag))
        if left.topic_named_by:
            named = "SET", keys.topic_name(scope), left.topic_named_by
            commands.append((*named, "EX", self._store.ttl_s, "NX"))
        await self._client.pipeline(commands)

    def _indexed(self, scope: Scope, left: StoredScope) -> list[Command]:
        keys, at_ms = self._store.keys, round(left.read_at * 1000)
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


def check_files(readers: Sequence[BackupReader], bot_id: int, *, is_other_bot: bool) -> Contents:
    """Read all files to their ends before anything is written; `readers` come newest first.

    Raise `BackupRefused`. `is_other_bot`: files of another bot are allowed.
    """
    contents = Contents()
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
                _check(last, records, contents)
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
            raise damaged() from None
        if last.get("kind") != "end":
            raise damaged()
    if not contents.journals.is_known():
        raise _unknown("the journal of erasures in the file holds an entry")
    if not contents.journals.is_sound():
        raise damaged()
    return contents


def _check(record: FileRecord, rest: Iterator[FileRecord], contents: Contents) -> None:
    """Read a record as a restore does, which then finds no damaged one; raise what that raises."""
    match record["kind"]:
        case "scope":
            contents.scopes += 1
            read_through(from_file(record, rest))
        case "journal":
            contents.journals.add(*_JOURNAL.validate_python((record["secrets"], record["entries"])))
        case "access":
            parts = _ACCESS.validate_python({part: record[part] for part in ACCESS_PARTS})
            for part in ACCESS_PARTS:
                for id_, value in parts[part].items():
                    contents.access.setdefault(id_, (part, value))


def _known(record: FileRecord) -> FileRecord:
    if record["kind"] not in _KINDS:
        raise _unknown(f"the file holds {record['kind']!r:.40}")
    return record


def _unknown(what: str) -> BackupRefused:
    return BackupRefused(
        f"{what}, which this version does not know: restore with the version that wrote it, or a "
        "newer one"
    )


def _writes(left: StoredScope, staged: Mapping[str, str]) -> Iterator[Command]:
    for name in HASHES:
        for field_name, value in getattr(left, name).items():
            yield "HSET", staged[name], field_name, value
    for name in STREAMS:
        for number, row in getattr(left, name):
            pairs = (part for pair in row.items() for part in pair)
            yield "XADD", staged[name], f"{number}-0", *pairs
