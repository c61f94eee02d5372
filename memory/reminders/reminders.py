"""Stores reminders, and gives each one that is due to one worker at a time.

A reminder is a field of its conversation, so a clear erases it with everything else. The index by
due time only says when to look: the field decides. An entry of the index may therefore be too
early, or name a reminder that is gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from time import time

import orjson

from memory.reminders.reminder import Reminder
from memory.store.commands import Command, ScriptCall
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.store.store import Store

MAX_OPEN = 50
"""Open reminders of one person, in all their conversations."""

ANSWER_S = 3_600
"""How long a reminder waits for the person to press a button."""

_LOOK_AGAIN_S = 86_400
"""Every entry of the index is looked at daily. So entries of erased reminders do not pile up."""


@dataclass(frozen=True, slots=True)
class TakenReminder:
    """A due reminder, and the lease on it."""

    conversation: Scope
    reminder: Reminder
    token: str


class Reminders:
    """The reminders of one bot."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._index = store.keys.reminders

    async def list_open(self, conversation: Scope, person: int = 0) -> list[Reminder]:
        """Return the open reminders of a conversation, of one person or of all, the next first."""
        stored = await self._store.client.call("HGETALL", self._key(conversation))
        reminders = (Reminder.of_stored(id_.decode(), value) for id_, value in stored.items())
        open_ = (each for each in reminders if each.is_open and person in (0, each.person))
        return sorted(open_, key=lambda each: each.due)

    async def count_open(self, person: int) -> int:
        """Return how many open reminders a person has, in all conversations."""
        tags = await self._store.client.call("HKEYS", self._store.keys.person(person))
        names = [self._key(Scope(tag.decode())) for tag in tags]
        found = await self._store.client.pipeline([("HVALS", name) for name in names])
        stored = (Reminder.of_stored("", value) for values in found for value in values)
        return sum(each.is_open and each.person == person for each in stored)

    async def find(self, conversation: Scope, id_: str) -> Reminder | None:
        """Return a reminder, whether the person has agreed to it or not."""
        stored = await self._store.client.call("HGET", self._key(conversation), id_)
        return Reminder.of_stored(id_, stored) if stored else None

    async def is_on_its_way(self, conversation: Scope, id_: str) -> bool:
        """Return whether an open turn is about to store a reminder with this id."""
        turn = self._store.keys.scope(conversation).turn
        outbox = await self._store.client.call("HGET", turn, "outbox") or b""
        return id_.encode() in outbox

    async def confirm(self, conversation: Scope, reminder: Reminder) -> bool:
        """Open a reminder that the person has agreed to; false if it is gone."""
        request = {"id": reminder.id, "due": _ms(reminder.due)}
        _, answer, _ = await self._store.client.pipeline(
            [
                self._look(conversation, reminder.id, reminder.due),
                self._call("confirm_reminder", conversation, request, reminder.body),
                self._look(conversation, reminder.id, reminder.due),
            ]
        )
        return bool(answer)

    async def cancel(self, conversation: Scope, id_: str) -> bool:
        """Erase a reminder; false if it is gone."""
        await self._store.journal.note_reminder(conversation, id_)
        erased = await self._store.client.call("HDEL", self._key(conversation), id_)
        self._store.erased.set()
        return bool(erased)

    async def due_in_s(self) -> float:
        """Return in how many seconds the first reminder may be due, inf without any."""
        return await self._store.due_in_s(self._index)

    async def find_due(self, max_reminders: int) -> list[tuple[Scope, str]]:
        """Return conversations and ids of reminders that may be due, the oldest first."""
        members = await self._store.client.call(
            "ZRANGEBYSCORE", self._index, "-inf", _ms(time()), "LIMIT", 0, max_reminders
        )
        named = (member.decode().rpartition("|") for member in members)
        return [(Scope(tag), id_) for tag, _, id_ in named]

    async def take(self, conversation: Scope, id_: str, lease_s: float) -> TakenReminder | None:
        """Take the lease on a due reminder; None if it is not due, gone or taken.

        Then the index says when to look again.
        """
        token = token_hex(16)
        outcome, *answer = await self._hold(conversation, id_, token, lease_s)
        if outcome == b"taken":
            return TakenReminder(conversation, Reminder.of_stored(id_, answer[0]), token)
        if outcome == b"gone":
            await self._store.client.call("ZREM", self._index, f"{conversation.tag}|{id_}")
        else:
            await self._store.client.pipeline(
                [self._look(conversation, id_, int(answer[0]) / 1000)]
            )
        return None

    async def mark_sending(self, taken: TakenReminder, lease_s: float) -> None:
        """Note that it is being sent, and extend the lease; raise `LeaseLost`."""
        await self._keep(taken, lease_s, taken.reminder.sends + 1)

    async def postpone(self, taken: TakenReminder, pause_s: float) -> None:
        """Let a reminder that was not sent wait for `pause_s`; raise `LeaseLost`."""
        await self._keep(taken, pause_s, taken.reminder.sends)
        look = self._look(taken.conversation, taken.reminder.id, time() + pause_s)
        await self._store.client.pipeline([look])

    async def close(self, taken: TakenReminder, due: float) -> None:
        """Let a reminder wait until it is `due` again, or erase it if that is 0.

        Raise `LeaseLost` if it was erased meanwhile, or another worker has taken it.
        """
        conversation, reminder = taken.conversation, taken.reminder
        request = {"id": reminder.id, "token": taken.token, "due": _ms(due)}
        call = self._call("close_reminder", conversation, request)
        [is_closed] = await self._store.client.pipeline([call])
        if not is_closed:
            raise LeaseLost(conversation.tag)
        if due:
            await self._store.client.pipeline([self._look(conversation, reminder.id, due)])
        else:
            member = f"{conversation.tag}|{reminder.id}"
            await self._store.client.call("ZREM", self._index, member)

    async def _keep(self, taken: TakenReminder, lease_s: float, sends: int) -> None:
        id_ = taken.reminder.id
        outcome, *_ = await self._hold(taken.conversation, id_, taken.token, lease_s, sends)
        if outcome != b"taken":
            raise LeaseLost(taken.conversation.tag)

    async def _hold(
        self, conversation: Scope, id_: str, token: str, lease_s: float, sends: int | None = None
    ) -> list[bytes]:
        request: dict[str, object] = {"id": id_, "token": token, "lease_ms": int(_ms(lease_s))}
        if sends is not None:
            request["sends"] = sends
        call = self._call("take_reminder", conversation, request)
        answer: list[bytes]
        [answer] = await self._store.client.pipeline([call])
        return answer

    def _look(self, conversation: Scope, id_: str, at: float) -> Command:
        return look_at(self._index, conversation, id_, at)

    def _call(
        self, name: str, conversation: Scope, request: Mapping[str, object], *opaque: str
    ) -> ScriptCall:
        keys = self._store.keys.scope(conversation)
        return self._store.scripts[name].command([keys.reminders, keys.confirm], request, *opaque)

    def _key(self, conversation: Scope) -> str:
        return self._store.keys.scope(conversation).reminders


def look_at(index: str, conversation: Scope, id_: str, at: float) -> Command:
    """Return the command that has workers look at a reminder then, at the latest in a day."""
    return "ZADD", index, _ms(min(at, time() + _LOOK_AGAIN_S)), f"{conversation.tag}|{id_}"


def first_looks(index: str, conversation: Scope, changes: str) -> list[Command]:
    """Return the commands that put the reminders of a turn into the index.

    They stand before and after the commit. Those before make sure that no stored reminder is
    missing in the index; those after, that nobody looked too early and removed the entry.
    """
    added, _ = orjson.loads(changes) if changes else ((), ())
    in_an_hour = time() + ANSWER_S
    return [
        look_at(index, conversation, id_, due / 1000 if due else in_an_hour)
        for id_, _, due, _ in added
    ]


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))
