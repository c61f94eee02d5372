"""The journal of erasures: what a restored backup must not bring back.

Every erasure adds one small entry. An entry has no content: ids are hashed with a secret of the
store, and messages and records are named by their numbers. It lives as long as a conversation
without messages (`ttl_s`), because a backup that is older restores no conversation at all.
"""

import hmac
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from secrets import token_hex
from typing import TypeAlias

from memory.store.client import RedisClient
from memory.store.errors import StoreFull
from memory.store.keys import Keys, Scope

_PAGE = 1_000
_CURRENT = "current"
_NUMBER_MARGIN_S = 86_400
"""Numbers are used again only after a store was lost, so clocks may differ by this much."""

_MAX_NUMBERS = 2_000_000
"""Numbers that the entries of one scope may name: more than a conversation can hold."""

Entries: TypeAlias = Mapping[str, float]
"""Entries as they are stored, and when each was written (Unix seconds of the server)."""


@dataclass(frozen=True, slots=True)
class ErasedParts:
    """What erasures took from a scope since a backup has read it."""

    messages: frozenset[int] = frozenset()  # numbers
    records: frozenset[int] = frozenset()  # numbers
    fields: frozenset[str] = frozenset()  # hashed names
    work: frozenset[str] = frozenset()  # ids
    epoch: int = 0  # the lowest one (`ScopeMemory.epoch`) of which facts elsewhere may stay
    is_cleared: bool = False  # all of it is gone


@dataclass(frozen=True, slots=True)
class Version:
    """A scope as a backup has read it: its epoch, its erasure version, and when (Unix seconds)."""

    epoch: int
    erasure: int
    read_at: float


@dataclass(slots=True)
class Erasures:
    """Entries of one or more journals, and the secrets with which their ids are hashed."""

    secrets: dict[str, str]
    entries: dict[str, float]
    _by_id: dict[str, list[tuple[list[str], float]]] = field(default_factory=dict)

    def add(self, secrets: Mapping[str, str], entries: Entries) -> None:
        """Add another journal."""
        self.secrets.update(secrets)
        for entry, at in entries.items():
            self.entries[entry] = max(at, self.entries.get(entry, 0))
        self._by_id.clear()

    def is_sound(self) -> bool:
        """Return whether reading the journal takes little memory, also if somebody changed it."""
        counts: Counter[str] = Counter()
        try:
            for entry in self.entries:
                hashed, kind, *parts = entry.split("|")
                for ranges in parts[1:3] if kind == "e" else ():
                    counts[hashed] += sum(max(0, each.stop - each.start) for each in _spans(ranges))
        except ValueError:
            return False
        # A scope has one id for each secret.
        return sum(sorted(counts.values())[-len(self.secrets) :]) <= _MAX_NUMBERS

    def of_scope(self, scope: Scope, version: Version) -> ErasedParts:
        """Return what was erased in a scope since this version of it."""
        messages: set[int] = set()
        records: set[int] = set()
        fields: set[str] = set()
        work: set[str] = set()
        epoch, is_cleared = 0, False
        for parts, at in self._find(scope.tag):
            is_of_then = version.read_at <= at + _NUMBER_MARGIN_S
            match parts:
                case ["x", item]:
                    work.add(item)
                case ["c", after, lowest] if is_of_then and version.epoch < int(after):
                    epoch, is_cleared = max(epoch, int(lowest)), True
                case ["e", after, *lists] if is_of_then and version.erasure < int(after):
                    messages |= _numbers(lists[0])
                    records |= _numbers(lists[1])
                    fields |= set(filter(None, lists[2].split(",")))
        taken = (frozenset(messages), frozenset(records), frozenset(fields), frozenset(work))
        return ErasedParts(*taken, epoch, is_cleared)

    def forgotten_until(self, person: int, read_at: float) -> float:
        """Return up to when a person was forgotten since a backup has read (Unix seconds), or 0."""
        found = self._find(_person(person))
        return max((float(parts[1]) for parts, at in found if read_at <= at), default=0)

    def is_taken(self, scope: Scope, name: str, taken: ErasedParts) -> bool:
        """Return whether a field is among those that were erased."""
        hashed = (_hashed(secret, scope.tag + " " + name) for secret in self.secrets.values())
        return any(each[:16] in taken.fields for each in hashed)

    def _find(self, what: str) -> list[tuple[list[str], float]]:
        if not self._by_id:
            for entry, at in self.entries.items():
                hashed, *parts = entry.split("|")
                self._by_id.setdefault(hashed, []).append((parts, at))
        ids = [_hashed(secret, what) for secret in self.secrets.values()]
        return [each for id_ in ids for each in self._by_id.get(id_, ())]


class ErasureJournal:
    """Writes and reads the journal of one bot."""

    def __init__(self, client: RedisClient, keys: Keys, ttl_s: int) -> None:
        self._client = client
        self._keys = keys
        self._ttl_s = ttl_s

    async def note_parts(
        self,
        scope: Scope,
        erasure: int,
        parts: tuple[Collection[int], Collection[int], Collection[str]],
    ) -> bool:
        """Note parts of a scope that are about to go; `erasure` is its version afterwards.

        The parts are messages, records and names of fields. Return false if Redis is full; then
        note it again when the erasure has freed memory.
        """
        messages, records, fields = parts
        if not any(parts):
            return True
        secret = await self._secret()
        names = ",".join(sorted(_hashed(secret, f"{scope.tag} {each}")[:16] for each in fields))
        what = (f"e|{erasure}", _ranges(messages), _ranges(records), names)
        try:
            await self._note(_hashed(secret, scope.tag), "|".join(what))
        except StoreFull:
            return False
        return True

    async def note_clear(self, scope: Scope) -> None:
        """Note that all of a scope was erased just now; safe to repeat."""
        meta = self._keys.scope(scope).meta
        generation, epoch = await self._client.call("HMGET", meta, "generation", "epoch")
        lowest = int(generation or 0) + int(epoch or 0)
        await self._note(_hashed(await self._secret(), scope.tag), f"c|{int(epoch or 0)}|{lowest}")

    async def note_person(self, person: int, until: float) -> None:
        """Note that a person is forgotten up to a time (Unix seconds)."""
        await self._note(_hashed(await self._secret(), _person(person)), f"p|{until:.3f}")

    async def note_work(self, scope: Scope, item: str) -> None:
        """Note that a work item is cancelled."""
        await self._note(_hashed(await self._secret(), scope.tag), f"x|{item}")

    async def mark(self) -> tuple[int, float]:
        """Return what changes with every entry: the number of entries and the newest time."""
        name = self._keys.erasures
        count, newest = await self._client.pipeline(
            [("ZCARD", name), ("ZRANGE", name, -1, -1, "WITHSCORES")]
        )
        return count, float(newest[0][1]) if newest else 0.0

    async def read(self) -> Erasures:
        """Return all of the journal."""
        stored = await self._client.call("HGETALL", self._keys.erasure_secrets)
        secrets = {name.decode(): each.decode() for name, each in stored.items()}
        secrets.pop(_CURRENT, None)
        entries: dict[str, float] = {}
        cursor, is_read = 0, False
        while not is_read:
            page = ("ZSCAN", self._keys.erasures, cursor, "COUNT", _PAGE)
            cursor, found = await self._client.call(*page)
            entries |= {entry.decode(): float(at) for entry, at in found}
            is_read = not int(cursor)
        return Erasures(secrets, entries)

    async def merge(self, erasures: Erasures) -> None:
        """Add the entries of other journals, so that they hold for later backups, too."""
        for name, secret in erasures.secrets.items():
            await self._client.call("HSET", self._keys.erasure_secrets, name, secret)
        oldest = await self._client.server_time() - self._ttl_s
        entries = [each for each in erasures.entries.items() if each[1] > oldest]
        for first in range(0, len(entries), _PAGE):
            await self._client.pipeline(
                [
                    ("ZADD", self._keys.erasures, "GT", repr(at), entry)
                    for entry, at in entries[first : first + _PAGE]
                ]
            )

    async def _note(self, hashed: str, what: str) -> None:
        name, now = self._keys.erasures, await self._client.server_time()
        trim = ("ZREMRANGEBYSCORE", name, "-inf", repr(now - self._ttl_s))
        await self._client.pipeline([trim, ("ZADD", name, repr(now), f"{hashed}|{what}")])

    async def _secret(self) -> str:
        """Return the secret of this store; the first erasure makes it."""
        name, new, secret = self._keys.erasure_secrets, token_hex(4), token_hex(32)
        current = await self._client.call("HGET", name, _CURRENT)
        if current is None:
            await self._client.call("HSET", name, new, secret)
            await self._client.call("HSETNX", name, _CURRENT, new)
            current = await self._client.call("HGET", name, _CURRENT)
        found: bytes = await self._client.call("HGET", name, current)
        return found.decode()


def _hashed(secret: str, what: str) -> str:
    return hmac.new(bytes.fromhex(secret), what.encode(), sha256).hexdigest()[:32]


def _person(user_id: int) -> str:
    return f"person {user_id}"


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers as `1-3,7`."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in ranges)


def _spans(ranges: str) -> list[range]:
    """Return the numbers of `1-3,7`, not expanded."""
    pairs = (each.partition("-") for each in ranges.split(",") if each)
    return [range(int(first), int(last or first) + 1) for first, _, last in pairs]


def _numbers(ranges: str) -> set[int]:
    return set(chain.from_iterable(_spans(ranges)))
