"""Who may use the bot besides the people and groups in its settings.

Admins let people and groups in, refuse them and remove them; an id below 0 is a group. If somebody
asks to be let in, only the id, the name, the language and the time are stored.

An invitation is a link that lets a number of people in until a time. Only the hash of its code is
stored. A code has 128 random bits, so the hash needs no salt.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from time import time
from typing import Any, Literal

from bot.telegram.admission import Members
from memory.erasure.jobs import Job
from memory.store.store import Scripts, Store

LUA = Path(__file__).parent / "lua"
MAX_ASKING = 100  # requests that may wait at once, so that many accounts cannot fill the store
_ASKING_S = 7 * 86_400
_MAX_REFUSED = 10_000

INVITATION = "i_"  # the payload of an invitation begins with it: `t.me/<bot>?start=i_<code>`

MAX_USES = 1_000
MAX_DAYS = 365
MAX_OPEN = 50
_CODE_BYTES = 16
_CODE_CHARS = 22
_ID_CHARS = 16
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

AskOutcome = Literal["asked", "waiting", "refused", "full"]
"""What became of a request: noted now, noted before, refused before, or too many wait."""
Way = Literal["asked", "link", "group"]
"""How somebody came in: by asking, by an invitation, or as a group that an admin brought."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Somebody who asks to be let in, since `at` (Unix seconds); `name` is "" once forgotten."""

    id: int
    name: str
    at: float
    language: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """Somebody who is in: since when (Unix seconds), in which way, and by which admin."""

    id: int
    name: str
    at: float
    way: Way
    by: int


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of an admin's decision."""

    is_new: bool  # it counts, because nobody had decided before
    is_in: bool  # the person or group is in now
    by: int  # the admin who decided, 0 if there was nothing to decide
    language: str = "en"  # of the request, if the decision counts


@dataclass(frozen=True, slots=True)
class Invitation:
    """An open invitation. Times are in Unix seconds."""

    id: str  # the beginning of its hash
    made_at: float
    ends_at: float
    left: int  # how often it can be used
    by: int  # the admin


class AccessList:
    """The list and the invitations in Redis. Every method raises `StoreError`."""

    def __init__(self, store: Store, members: Members) -> None:
        self.members = members  # the ids that this process has read
        self._client = store.client
        self._keys = store.keys
        self._scripts = Scripts(store.client, LUA)
        self._ttl_s = store.ttl_s

    async def ask_in(self, id_: int, name: str, language: str) -> AskOutcome:
        """Note that somebody wants to come in."""
        keys = [self._keys.access(part) for part in ("asking", "untold", "refused")]
        request = {
            "id": str(id_),
            "language": language,
            "max": MAX_ASKING,
            "keep_ms": _ASKING_S * 1000,
        }
        answer = await self._scripts["ask_in"]([*keys, self._name(id_)], request, name)
        outcome: AskOutcome = answer.decode()
        return outcome

    async def decide(
        self, id_: int, by: int, decision: Literal["admit", "refuse", "remove"]
    ) -> Decision:
        """Decide about somebody who asks, or remove somebody who is in; the first decision counts.

        Somebody who is removed counts as refused from now on.
        """
        parts = ("asking", "untold", "admitted", "refused", "version")
        request = {
            "id": str(id_),
            "decision": decision,
            "by": str(by),
            "ttl_s": self._ttl_s,
            "max_refused": _MAX_REFUSED,
        }
        keys = [*map(self._keys.access, parts), self._name(id_)]
        outcome, _, rest = (await self._scripts["decide_access"](keys, request)).partition(b"|")
        await self.members.refresh()
        if outcome != b"done":
            return Decision(is_new=False, is_in=outcome == b"in", by=int(rest or 0))
        language = "en" if decision == "remove" else rest.partition(b"|")[2].decode()
        return Decision(is_new=True, is_in=decision == "admit", by=by, language=language)

    async def admit_group(self, id_: int, name: str, by: int) -> None:
        """Let a group in without asking, because an admin wants it there; safe to repeat."""
        key, id_text = self._keys.access, str(id_)
        now = int(await self._client.server_time())
        await self._client.pipeline(
            [
                ("HSET", key("admitted"), id_text, f"{now}000|group|{by}"),
                ("HDEL", key("refused"), id_text),
                ("HDEL", key("asking"), id_text),
                ("ZREM", key("untold"), id_text),
                ("SET", self._name(id_), name, "EX", self._ttl_s),
                ("INCR", key("version")),
            ]
        )
        await self.members.refresh()

    async def list_admitted(self) -> list[Admitted]:
        """Return who is in, the newest first."""
        found = await self._listed("admitted")
        listed = [Admitted(id_, name, at, way, int(by)) for id_, name, at, (way, by) in found]
        return sorted(listed, key=lambda each: (-each.at, each.id))

    async def list_asking(self, *, untold: bool = False) -> list[Asking]:
        """Return who asks to be let in, the oldest first; `untold`: only if no admin was told."""
        untold_ids = await self._client.call("ZRANGE", self._keys.access("untold"), 0, -1)
        if untold and not untold_ids:
            return []
        listed = [
            Asking(id_, name, at, language)
            for id_, name, at, (language, *_) in await self._listed("asking")
            if not untold or b"%d" % id_ in untold_ids
        ]
        return sorted(listed, key=lambda each: (each.at, each.id))

    async def mark_told(self, id_: int) -> None:
        """Note that admins were told about somebody who asks."""
        await self._client.call("ZREM", self._keys.access("untold"), id_)

    async def count_this_hour(self, what: str) -> int:
        """Count something, and return how often it was counted in this hour."""
        hour = int(await self._client.server_time()) // 3600
        key = self._keys.access(f"hour:{what}:{hour}")
        count, _ = await self._client.pipeline([("INCR", key), ("EXPIRE", key, 7200)])
        return int(count)

    async def may_tell(self, what: str, every_s: int) -> bool:
        """Return whether something may be said now; after a yes, it may not for `every_s`."""
        key = self._keys.access(f"said:{what}")
        return bool(await self._client.call("SET", key, 1, "NX", "EX", every_s))

    async def knows(self, person: int) -> bool:
        """Return whether anything is stored of a person: messages, a name, a decision."""
        key = self._keys.access
        listed = [("HEXISTS", key(part), person) for part in ("asking", "admitted", "refused")]
        found = await self._client.pipeline([("EXISTS", self._keys.person(person)), *listed])
        return any(found)

    async def stored_of(self, person: int) -> dict[str, str] | None:
        """Return what is stored of a person, for their export; None if nothing is."""
        key, parts = self._keys.access, ("asking", "admitted", "refused")
        commands = [("HGET", key(part), person) for part in parts]
        *found, name = await self._client.pipeline([*commands, ("GET", self._name(person))])
        states = [(part, stored) for part, stored in zip(parts, found, strict=True) if stored]
        if not states:
            return None
        state, stored = states[0]
        at = int(stored.partition(b"|")[0]) / 1000
        since = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
        return {"state": state, "since": since, "name": (name or b"").decode()}

    async def forget(self, job: Job) -> None:
        """Erase the name of a forgotten person and their request to come in.

        The id of somebody who is in or was refused stays, so that the decision holds.
        """
        if job.kind != "forget":
            return
        key, person = self._keys.access, job.target
        await self._client.pipeline(
            [
                ("HDEL", key("asking"), person),
                ("ZREM", key("untold"), person),
                ("DEL", self._name(person), key(f"said:{person}"), key(f"said:{person}:link")),
            ]
        )

    async def make_invitation(self, uses: int, days: int, by: int) -> str:
        """Return the code of a new invitation, "" if `MAX_OPEN` are open."""
        if len(await self.list_invitations()) >= MAX_OPEN:
            return ""
        code, now_ms = token_urlsafe(_CODE_BYTES), int(time() * 1000)
        stored = f"{now_ms}|{now_ms + days * 86_400_000}|{uses}|{by}"
        await self._client.call("HSET", self._keys.access("links"), _hash(code), stored)
        return code

    async def use_invitation(self, code: str, person: int, name: str) -> bool:
        """Let a person in by a code; return false if the code is not valid for them."""
        if len(code) != _CODE_CHARS or not _LETTERS.issuperset(code):
            return False
        parts = ("links", "admitted", "refused", "asking", "untold", "version", f"name:{person}")
        keys = [self._keys.access(part) for part in parts]
        request = {"link": _hash(code), "id": str(person), "ttl_s": self._ttl_s}
        is_in: bool = await self._scripts["use_link"](keys, request, name) == b"in"
        await self.members.refresh()
        return is_in

    async def list_invitations(self) -> list[Invitation]:
        """Return the open invitations, the newest first; drop those that have ended."""
        key = self._keys.access("links")
        links = (await self._client.call("HGETALL", key)).items()
        found = [(link.decode(), *map(int, stored.split(b"|"))) for link, stored in links]
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

    async def withdraw_invitation(self, id_: str) -> None:
        """End an invitation; one that is not open changes nothing."""
        key = self._keys.access("links")
        for link in await self._client.call("HKEYS", key):
            if link[:_ID_CHARS].decode() == id_:
                await self._client.call("HDEL", key, link)

    def _name(self, id_: int) -> str:
        return self._keys.access(f"name:{id_}")

    async def _listed(self, part: str) -> list[tuple[int, str, float, list[Any]]]:
        """Return the id, the name, the time and what else is stored of each in a part."""
        found = await self._client.call("HGETALL", self._keys.access(part))
        if not found:
            return []
        names = await self._client.call("MGET", *(self._name(int(id_)) for id_ in found))
        listed = []
        for (id_, stored), name in zip(found.items(), names, strict=True):
            at, *more = stored.decode().split("|")
            listed.append((int(id_), (name or b"").decode(), int(at) / 1000, more))
        return listed


def _hash(code: str) -> str:
    return sha256(code.encode()).hexdigest()
