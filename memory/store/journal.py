"""The journal of erasures: what a restored backup must not bring back.

Every erasure adds one small entry. An entry has no content: ids are hashed with a secret of the
store, and messages and records are named by their numbers. It lives as long as a conversation
without messages (`ttl_s`), because a backup that is older restores no conversation at all.
"""

import hmac
from collections import defaultdict
from collections.abc import Collection, Iterable
from hashlib import sha256
from secrets import token_hex

from memory.store.client import RedisClient
from memory.store.errors import StoreFull
from memory.store.keys import Keys, Scope

CURRENT = "current"  # names the newest of the secrets
NAME_CHARS = 16  # of a field's hashed name; the generation has fewer


class ErasureJournal:
    """Writes the journal of one bot. Backups read it."""

    def __init__(self, client: RedisClient, keys: Keys, ttl_s: int) -> None:
        self._client = client
        self._keys = keys
        self._ttl_s = ttl_s

    async def note_parts(
        self,
        scope: Scope,
        version: tuple[int, int],
        parts: tuple[Collection[int], Collection[int], Collection[str]],
        hidden: Iterable[tuple[int, bool, int]] = (),
    ) -> bool:
        """Note parts of a scope that are about to go; `version` is its generation and erasure now.

        The parts are messages, records and names of fields. `hidden` has messages that are about to
        be hidden, or to be shown again (false), each with the reason. Return false if Redis is
        full; then note it again when the erasure has freed memory.
        """
        (generation, erasure), (messages, records, fields) = version, parts
        changed = defaultdict[str, set[int]](set)
        for seq, is_hidden, because in hidden:
            changed[f"{'h' if is_hidden else 's'}|{erasure}|{because}"].add(seq)
        if not (changed or any(parts)):
            return True
        secret = await self._secret()
        notes = [f"{kind}|{_ranges(seqs)}" for kind, seqs in changed.items()]
        if any(parts):
            names = sorted(hash_of(secret, f"{scope.tag} {each}")[:NAME_CHARS] for each in fields)
            # Among the names, because the release before reads it as that of an unknown field.
            names += [f"{generation:x}"] if generation else []
            what = f"e|{erasure + 1}", _ranges(messages), _ranges(records), ",".join(names)
            notes.append("|".join(what))
        try:
            for note in notes:
                await self._note(hash_of(secret, scope.tag), note)
        except StoreFull:
            return False
        return True

    async def note_clear(self, scope: Scope) -> None:
        """Note that all of a scope was erased just now; safe to repeat."""
        meta = self._keys.scope(scope).meta
        generation, epoch = await self._client.call("HMGET", meta, "generation", "epoch")
        lowest = int(generation or 0) + int(epoch or 0)
        await self._note(hash_of(await self._secret(), scope.tag), f"c|{int(epoch or 0)}|{lowest}")

    async def note_person(self, person: int, until: float) -> None:
        """Note that a person is forgotten up to a time (Unix seconds)."""
        await self._note(hash_of(await self._secret(), person_name(person)), f"p|{until:.3f}")

    async def note_work(self, scope: Scope, item: str) -> None:
        """Note that a work item is cancelled."""
        await self._note(hash_of(await self._secret(), scope.tag), f"x|{item}")

    async def _note(self, hashed: str, what: str) -> None:
        name, now = self._keys.erasures, await self._client.server_time()
        trim = ("ZREMRANGEBYSCORE", name, "-inf", repr(now - self._ttl_s))
        await self._client.pipeline([trim, ("ZADD", name, repr(now), f"{hashed}|{what}")])

    async def _secret(self) -> str:
        """Return the secret of this store; the first erasure makes it."""
        name, new, secret = self._keys.erasure_secrets, token_hex(4), token_hex(32)
        current = await self._client.call("HGET", name, CURRENT)
        if current is None:
            await self._client.call("HSET", name, new, secret)
            await self._client.call("HSETNX", name, CURRENT, new)
            current = await self._client.call("HGET", name, CURRENT)
        found: bytes = await self._client.call("HGET", name, current)
        return found.decode()


def hash_of(secret: str, what: str) -> str:
    """Return the id under which entries name a scope, a field of it, or a person."""
    return hmac.new(bytes.fromhex(secret), what.encode(), sha256).hexdigest()[:32]


def person_name(user_id: int) -> str:
    """Return what is hashed of a person."""
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
