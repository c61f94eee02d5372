"""The journal of erasures as backups read it: what was erased since a scope was saved.

`memory.store.journal` writes it, and says what an entry holds.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from secrets import token_hex

from memory.scopes.entries import Hidden
from memory.store.journal import CURRENT, NAME_CHARS, hash_of, person_name
from memory.store.keys import Scope
from memory.store.store import Store

_PAGE = 1_000
_NUMBER_MARGIN_S = 79_200  # less than the 23 hours after which a conversation may expire
"""Numbers are used again after an expiry or a lost store; clocks may differ by this much."""

_ENTRY = re.compile(
    r"\A(?:c\|\d{1,15}\|\d{1,15}|e\|\d{1,15}\|[\d,-]*\|[\d,-]*\|[\da-f,]*|p\|\d{1,12}\.\d+|x\|[^|]+"
    r"|[hs]\|\d{1,15}\|-?\d{1,15}\|[\d,-]+)\Z",
    re.ASCII,
)
"""What an entry says of a hashed id, as `memory.store.journal` writes it."""
_MAX_NUMBERS = 2_000_000  # that entries of one scope may name: more than a conversation can hold


@dataclass(slots=True)
class ErasedParts:
    """What erasures took from a scope since a backup has read it."""

    messages: dict[int, set[int]] = field(default_factory=dict)  # numbers by generation (0: any)
    records: set[int] = field(default_factory=set)  # numbers
    fields: set[str] = field(default_factory=set)  # hashed names
    work: set[str] = field(default_factory=set)  # ids
    # Messages that were hidden, or shown again, each with the time (Unix seconds).
    hidden: list[tuple[float, Hidden]] = field(default_factory=list)
    epoch: int = 0  # the lowest one (`ScopeMemory.source_epoch`) of which facts elsewhere may stay
    is_cleared: bool = False  # all of it is gone


@dataclass(slots=True)
class Erasures:
    """Entries of one or more journals, and the secrets with which their ids are hashed."""

    secrets: dict[str, str]
    entries: dict[str, float]  # as they are stored, and when each was written (Unix seconds)
    _by_id: dict[str, list[tuple[list[str], float]]] = field(default_factory=dict)

    def add(self, secrets: Mapping[str, str], entries: Mapping[str, float]) -> None:
        """Add another journal."""
        self.secrets.update(secrets)
        for entry, at in entries.items():
            self.entries[entry] = max(at, self.entries.get(entry, 0))
        self._by_id.clear()

    def note(self, noted: Iterable[tuple[str, str]], at: float) -> None:
        """Add entries, each with the name (`Scope.tag` or `person_name`) that it is about."""
        if not self.secrets:
            self.secrets[token_hex(4)] = token_hex(32)
        secret = next(iter(self.secrets.values()))
        self.add({}, {f"{hash_of(secret, name)}|{entry}": at for name, entry in noted})

    def is_cleared_since(self, name: str, at: float) -> bool:
        """Return whether all of a scope was erased at this time or later (Unix seconds)."""
        return any(parts[0] == "c" and at <= noted_at for parts, noted_at in self._find(name))

    def is_known(self) -> bool:
        """Return whether this version knows the kind of each entry; a newer one may have more."""
        kinds = {entry.partition("|")[2].partition("|")[0] for entry in self.entries}
        return kinds <= {*"cehpsx", ""}

    def is_sound(self) -> bool:
        """Return whether all of it can be read here, and takes little memory to read."""
        counts: Counter[str] = Counter()
        try:
            for secret in self.secrets.values():
                bytes.fromhex(secret)
            for entry in self.entries:
                hashed, _, what = entry.partition("|")
                if not _ENTRY.match(what):
                    return False
                kind, *parts = what.split("|")
                for ranges in {"e": parts[1:3], "h": parts[2:], "s": parts[2:]}.get(kind, ()):
                    counts[hashed] += sum(max(0, each.stop - each.start) for each in _spans(ranges))
        except ValueError:
            return False
        # A scope has one id for each secret.
        return sum(sorted(counts.values())[-len(self.secrets) :]) <= _MAX_NUMBERS

    def of_scope(
        self,
        scope: Scope,
        read_at: float,
        versions: tuple[int, int] = (-1, -1),
        generation: int = 0,
    ) -> ErasedParts:
        """Return what was erased in a scope since a backup has read these versions of it.

        They are its epoch and its erasure version. After the loss of a store they begin at 0 again,
        so a clear also counts for what an earlier `generation` has.
        """
        taken, (epoch, erasure) = ErasedParts(), versions
        for parts, at in self._find(scope.tag):
            is_of_then = read_at <= at + _NUMBER_MARGIN_S
            match parts:
                case ["x", item]:
                    taken.work.add(item)
                case ["c", after, lowest] if is_of_then and (
                    epoch < int(after) or generation + epoch < int(lowest)
                ):
                    taken.epoch, taken.is_cleared = max(taken.epoch, int(lowest)), True
                case ["e", after, *lists] if is_of_then and erasure < int(after):
                    names = set(filter(None, lists[2].split(",")))
                    named = next((int(each, 16) for each in names if len(each) < NAME_CHARS), 0)
                    if generation and named not in (0, generation):
                        continue  # the conversation has expired, and counted from 1 again
                    taken.messages.setdefault(named, set()).update(*_spans(lists[0]))
                    taken.records.update(*_spans(lists[1]))
                    taken.fields |= names
                case ["h" | "s" as kind, then, because, seqs] if is_of_then and erasure <= int(
                    then
                ):
                    numbers = chain(*_spans(seqs))
                    all_of_it = (Hidden(seq, kind == "h", int(because)) for seq in numbers)
                    taken.hidden += [(at, each) for each in all_of_it]
        return taken

    def forgotten_until(self, person: int, read_at: float) -> float:
        """Return up to when a person was forgotten since a backup has read (Unix seconds), or 0."""
        found = self._find(person_name(person))
        return max((float(parts[1]) for parts, at in found if read_at <= at), default=0)

    def is_taken(self, scope: Scope, name: str, taken: ErasedParts) -> bool:
        """Return whether a field is among those that were erased."""
        hashed = (hash_of(secret, scope.tag + " " + name) for secret in self.secrets.values())
        return any(each[:NAME_CHARS] in taken.fields for each in hashed)

    def _find(self, what: str) -> list[tuple[list[str], float]]:
        if not self._by_id:
            for entry, at in self.entries.items():
                hashed, *parts = entry.split("|")
                self._by_id.setdefault(hashed, []).append((parts, at))
        ids = [hash_of(secret, what) for secret in self.secrets.values()]
        return [each for id_ in ids for each in self._by_id.get(id_, ())]


async def journal_mark(store: Store) -> tuple[int, float]:
    """Return what changes with every entry: the number of entries and the newest time."""
    name = store.keys.erasures
    asking = [("ZCARD", name), ("ZRANGE", name, -1, -1, "WITHSCORES")]
    count, newest = await store.client.pipeline(asking)
    return count, float(newest[0][1]) if newest else 0.0


async def read_journal(store: Store) -> Erasures:
    """Return all of the journal."""
    stored = await store.client.call("HGETALL", store.keys.erasure_secrets)
    secrets = {name.decode(): each.decode() for name, each in stored.items()}
    secrets.pop(CURRENT, None)
    entries: dict[str, float] = {}
    # By time: a cursor means nothing on another server, and a position nothing if entries move.
    asked, first, is_more = ("ZRANGEBYSCORE", store.keys.erasures), "-inf", True
    while is_more:
        page = await store.client.call(*asked, first, "+inf", "WITHSCORES", "LIMIT", 0, _PAGE)
        if is_more := len(page) == _PAGE:
            last = page[-1][1]
            page += await store.client.call(*asked, last, last, "WITHSCORES")
            first = f"({last}"
        entries |= {entry.decode(): float(at) for entry, at in page}
    return Erasures(secrets, entries)


async def merge_journals(store: Store, erasures: Erasures) -> None:
    """Add the entries of other journals to ours, so that they hold for later backups, too."""
    for name, secret in erasures.secrets.items():
        await store.client.call("HSET", store.keys.erasure_secrets, name, secret)
    oldest = await store.client.server_time() - store.ttl_s
    entries = [each for each in erasures.entries.items() if each[1] > oldest]
    for first in range(0, len(entries), _PAGE):
        name, page = store.keys.erasures, entries[first : first + _PAGE]
        await store.client.pipeline([("ZADD", name, "GT", repr(at), entry) for entry, at in page])


def _spans(ranges: str) -> list[range]:
    """Return the numbers of `1-3,7`, not expanded."""
    pairs = (each.partition("-") for each in ranges.split(",") if each)
    return [range(int(first), int(last or first) + 1) for first, _, last in pairs]
