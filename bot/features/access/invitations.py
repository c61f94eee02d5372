"""Invitations: links that let a number of people in until a time.

Only the hash of a code is stored. A code has 128 random bits, so the hash needs no salt.
"""

from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from time import time

from bot.features.access.access_list import LUA
from memory.limits.members import Members
from memory.store.scripts import Scripts
from memory.store.store import Store

INVITATION = "i_"
"""The payload of an invitation begins with it: `t.me/<bot>?start=i_<code>`."""

MAX_USES = 1_000
MAX_DAYS = 365
MAX_OPEN = 50
_CODE_BYTES = 16
_CODE_CHARS = 22
_ID_CHARS = 16
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@dataclass(frozen=True, slots=True)
class Invitation:
    """An open invitation of the admin `by`, which can be used `left` times more.

    `id` is the beginning of its hash. Times are in Unix seconds.
    """

    id: str
    made_at: float
    ends_at: float
    left: int
    by: int


class Invitations:
    """Makes invitations, uses them up and withdraws them. Every method raises `StoreError`."""

    def __init__(self, store: Store, members: Members) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = Scripts(store.client, LUA)
        self._ttl_s = store.ttl_s
        self._members = members

    async def make(self, uses: int, days: int, by: int) -> str:
        """Return the code of a new invitation, "" if `MAX_OPEN` are open."""
        if len(await self.list_open()) >= MAX_OPEN:
            return ""
        code, now_ms = token_urlsafe(_CODE_BYTES), int(time() * 1000)
        stored = f"{now_ms}|{now_ms + days * 86_400_000}|{uses}|{by}"
        await self._client.call("HSET", self._keys.access("links"), _hash(code), stored)
        return code

    async def use(self, code: str, person: int, name: str) -> bool:
        """Let a person in by a code; return false if the code is not valid for them."""
        if len(code) != _CODE_CHARS or not _LETTERS.issuperset(code):
            return False
        parts = ("links", "admitted", "refused", "asking", "untold", "version", f"name:{person}")
        keys = [self._keys.access(part) for part in parts]
        request = {"link": _hash(code), "id": str(person), "ttl_s": self._ttl_s}
        is_in: bool = await self._scripts["use_link"](keys, request, name) == b"in"
        await self._members.refresh()
        return is_in

    async def list_open(self) -> list[Invitation]:
        """Return the open invitations, the newest first; drop those that have ended."""
        key = self._keys.access("links")
        found = [
            (link.decode(), *map(int, stored.split(b"|")))
            for link, stored in (await self._client.call("HGETALL", key)).items()
        ]
        now_ms = time() * 1000
        ended = [link for link, _, ends_at, _, _ in found if ends_at <= now_ms]
        if ended:
            await self._client.call("HDEL", key, *ended)
        listed = [
            Invitation(link[:_ID_CHARS], made_at / 1000, ends_at / 1000, left, by)
            for link, made_at, ends_at, left, by in found
            if ends_at > now_ms
        ]
        return sorted(listed, key=lambda each: (-each.made_at, each.id))

    async def withdraw(self, id_: str) -> bool:
        """End an invitation; return false if it is not open."""
        key = self._keys.access("links")
        if len(id_) != _ID_CHARS:
            return False
        found = await self._client.call("HKEYS", key)
        links = [link for link in found if link.startswith(id_.encode())]
        return bool(links and await self._client.call("HDEL", key, *links))


def _hash(code: str) -> str:
    return sha256(code.encode()).hexdigest()
