"""Stores work items, and gives each one that is due to one worker at a time.

An item is a field of its conversation, so a clear erases it with everything else. The index by due
time only says when to look: the field decides. An entry of the index may therefore be too early, or
name an item that is gone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from memory.scopes.changes import NotWritten
from memory.scopes.log import version_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Source
from memory.store.commands import Command
from memory.store.errors import LeaseLost
from memory.store.keys import TAG_FIELD, Scope
from memory.store.store import Store
from memory.work.item import BEGUN, WorkItem

ANSWER_S = 3_600  # how long an item waits for the person to press a button
_EXPIRED = 10**15  # as in `shared/messages.lua`
_GONE_AGAIN_S = 60
_LOOK_AGAIN_S = 86_400
"""Every entry of the index is looked at daily, also that of a task whose turn has begun."""


@dataclass(frozen=True, slots=True)
class TakenWork:
    """A due item, and the lease on it."""

    conversation: Scope
    item: WorkItem
    token: str


class WorkItems:
    """The work items of one bot; with a `kind` only those are listed and counted."""

    def __init__(self, store: Store, kind: str = "") -> None:
        self._store = store
        self._index = store.keys.work
        self._kind = kind

    def of_kind(self, kind: str) -> "WorkItems":
        """Return the same, restricted to the items of one kind."""
        return WorkItems(self._store, kind)

    async def list_open(
        self, conversation: Scope, person: int = 0, *, is_open: bool = True
    ) -> list[WorkItem]:
        """Return the open items of a conversation, of one person or of all (0), the next first.

        If not `is_open`, return those that wait for an answer instead.
        """
        stored = await self._store.client.call("HGETALL", self._key(conversation))
        items = (WorkItem.of_stored(id_.decode(), value) for id_, value in stored.items())
        meant = (e for e in items if e.is_open == is_open and self._is_meant(e, person))
        return sorted(meant, key=lambda each: each.due)

    async def open_of(self, person: int) -> list[WorkItem]:
        """Return the open items of a person in all conversations."""
        tags = await self._store.client.call("HKEYS", self._store.keys.person(person))
        names = [self._key(Scope(tag.decode())) for tag in tags]
        found = await self._store.client.pipeline([("HGETALL", name) for name in names])
        pairs = (pair for each in found for pair in each.items())
        stored = (WorkItem.of_stored(id_.decode(), value) for id_, value in pairs)
        return [each for each in stored if each.is_open and self._is_meant(each, person)]

    def now(self) -> float:
        """Return the time by which work is due, without asking for it."""
        return self._store.client.now()

    async def clock_ahead_s(self) -> int:
        """Return how many seconds the clock by which work is due is ahead of ours."""
        return round(await self._store.client.clock_ahead_s())

    async def find(self, conversation: Scope, id_: str) -> WorkItem | None:
        """Return an item, whether the person has agreed to it or not."""
        stored = await self._store.client.call("HGET", self._key(conversation), id_)
        return WorkItem.of_stored(id_, stored) if stored else None

    async def add(
        self,
        here: ScopeMemory,
        item: WorkItem,
        facts: ScopeMemory | None = None,
        source: Source | None = None,
    ) -> None:
        """Store an open item outside of a turn; a repeat with its id changes nothing.

        `here` is the conversation as it was read before. If the item follows from a fact, `source`
        is the first one of that fact, a message here, and `facts` the scope of `facts_scope`, also
        as it was read. The item is erased with the fact, the message or the conversation, and when
        its person is erased. Raise `NotWritten` if anything was erased since that reading.
        """
        conversation = here.scope
        if source and source.tag != conversation.tag:
            raise ValueError("the item belongs into the conversation of the source")
        if source and source.epoch < here.source_epoch:  # a clear that is under way erases it
            raise NotWritten(conversation.tag)
        look = self._look(conversation, item.id, item.due)
        epoch, erasure = here.version
        added = (item.id, item.person, source.seq if source else 0, round(item.due * 1000))
        request = {"item": added, "epoch": epoch, "erasure": erasure}
        add = self._store.call("add_work", conversation, request, item.body)
        _, is_added, _ = await self._store.client.pipeline([look, add, look])
        if not is_added:
            raise NotWritten(conversation.tag)
        if facts is None:
            return
        # The facts may have another slot. An erasure takes a fact first, and then its items.
        version = await self._store.read_meta(facts.scope, "epoch", "erasure")
        if version_of(version) != facts.version:
            await self.cancel(conversation, item.id)
            raise NotWritten(facts.scope.tag)

    async def drop_unasked(self, conversation: Scope, seqs: Collection[int]) -> None:
        """Erase the items that follow from facts which rest on these messages.

        A message of a conversation that has expired since counts as minus its sequence.
        """
        stored = await self._store.client.call("HGETALL", self._key(conversation))
        for id_, value in stored.items():
            seq = int(value.split(b"|", 2)[1])
            is_meant = (seq if seq < _EXPIRED else _EXPIRED - seq) in seqs
            if is_meant and not WorkItem.of_stored("", value).message_id:
                await self.cancel(conversation, id_.decode())

    async def confirm(self, conversation: Scope, item: WorkItem, was_due: float = 0) -> bool:
        """Open an item that the person has agreed to, or change one due then; false if gone."""
        request = {"id": item.id, "due": _ms(item.due), "was_due": _ms(was_due)}
        look = self._look(conversation, item.id, item.due)
        confirm = self._store.call("confirm_work", conversation, request, item.body)
        _, answer, _ = await self._store.client.pipeline([look, confirm, look])
        return bool(answer)

    async def cancel(self, conversation: Scope, id_: str) -> bool:
        """Erase an item; false if it is gone."""
        await self._store.journal.note_work(conversation, id_)
        erased = await self._store.client.call("HDEL", self._key(conversation), id_)
        self._store.erased.set()
        return bool(erased)

    async def due_in_s(self) -> float:
        """Return in how many seconds the first item may be due, inf without any."""
        return await self._store.due_in_s(self._index) - self._store.client.ahead_s

    async def find_due(self, max_items: int) -> list[tuple[Scope, str]]:
        """Return conversations and ids of items that may be due, the oldest first."""
        members = await self._store.client.call(
            "ZRANGEBYSCORE", self._index, "-inf", _ms(self.now()), "LIMIT", 0, max_items
        )
        named = (member.decode().rpartition("|") for member in members)
        return [(Scope(tag), id_) for tag, _, id_ in named]

    async def take(self, conversation: Scope, id_: str, lease_s: float) -> TakenWork | None:
        """Take the lease on a due item; None if it is not due, gone or taken.

        Then the index says when to look again, at the latest in a day. An entry without an item is
        removed at the second look: the commit that stores the item may be on its way.
        """
        token, member = token_hex(16), f"{conversation.tag}|{id_}"
        request: dict[str, object] = {"id": id_, "token": token, "lease_ms": round(lease_s * 1000)}
        outcome, *answer = await self._store.run("take_work", conversation, request)
        if outcome == b"taken":
            return TakenWork(conversation, WorkItem.of_stored(id_, answer[0]), token)
        if answer:
            await self._look_again(conversation, id_, int(answer[0]) / 1000)
        elif (score := await self._store.client.call("ZSCORE", self._index, member)) is not None:
            # Commits store whole milliseconds, so ".5" marks what was seen without its item.
            again = {} if score % 1 else {"next": f"{_ms(self.now() + _GONE_AGAIN_S)}.5"}
            request = {"member": member, "score": repr(score), **again}
            await self._store.scripts["take_due"]([self._index], request)
        return None

    async def hold(self, taken: TakenWork, lease_s: float, sends: int = 0) -> None:
        """Extend the lease; `sends` is the new count of requests; raise `LeaseLost`.

        It is raised right before a request leaves. With 0, one that was not sent does not count.
        """
        lease = {"token": taken.token, "lease_ms": round(lease_s * 1000)}
        request = {"id": taken.item.id, **lease, "sends": sends or taken.item.sends}
        outcome, *_ = await self._store.run("take_work", taken.conversation, request)
        if outcome != b"taken":
            raise LeaseLost(taken.conversation.tag)

    async def postpone(self, taken: TakenWork, pause_s: float, sends: int = 0) -> None:
        """Let an item wait for `pause_s`; `sends` is as in `hold`; raise `LeaseLost`."""
        await self.hold(taken, pause_s, sends)
        await self._look_again(taken.conversation, taken.item.id, self.now() + pause_s)

    async def close(self, taken: TakenWork, due: float, member: bytes = b"") -> bool:
        """Let an item wait until it is `due` again, or erase it if that is 0.

        `member` is the entry of a task: it goes into the mailbox in the same step. A task that is
        not due again stays for a day, not open, so that its turn sees whether somebody erased it.
        Return false, and change nothing, if nothing that is said there now may be kept. Raise
        `LeaseLost` if the item was erased meanwhile, or another worker has taken it.
        """
        conversation, item, keys = taken.conversation, taken.item, self._store.keys
        request = {"id": item.id, "token": taken.token, "due": _ms(due)}
        if not member:
            outcome = await self._store.run("close_work", conversation, request)
        else:
            request |= {"ttl_s": str(self._store.ttl_s), "begun": f"{BEGUN}|{_ms(_LOOK_AGAIN_S)}"}
            call = self._store.call("close_work", conversation, request, member)
            # The index of conversations first: a sweep finds the entry if nobody is woken up.
            index = self._store.indexing(conversation)
            wake_up = ("XADD", keys.ready_queue, "*", TAG_FIELD, conversation.tag)
            _, outcome, _ = await self._store.client.pipeline([index, call, wake_up])
        if not outcome:
            raise LeaseLost(conversation.tag)
        if due:
            await self._look_again(conversation, item.id, due)
        elif not member:
            await self._store.client.call("ZREM", self._index, f"{conversation.tag}|{item.id}")
        return bool(outcome > 0)

    def _is_meant(self, item: WorkItem, person: int) -> bool:
        return self._kind in ("", item.kind) and person in (0, item.person)

    async def _look_again(self, conversation: Scope, id_: str, at: float) -> None:
        """Note when to look at an item, a day from now at the latest.

        Its conversation, where all else may have expired, stays listed for two days: for erasures.
        """
        kept_from = int(self.now()) - self._store.ttl_s + 2 * _LOOK_AGAIN_S
        index = self._store.keys.index_of(conversation)
        listed = ("ZADD", index, "GT", kept_from, conversation.tag)
        await self._store.client.pipeline([self._look(conversation, id_, at), listed])

    def _look(self, conversation: Scope, id_: str, at: float) -> Command:
        return look_at(self._index, conversation, id_, at, self.now())

    def _key(self, conversation: Scope) -> str:
        return self._store.keys.scope(conversation).work


def look_at(index: str, conversation: Scope, id_: str, at: float, now: float) -> Command:
    """Return the command that has workers look at an item then, at the latest a day after `now`."""
    return "ZADD", index, _ms(min(at, now + _LOOK_AGAIN_S)), f"{conversation.tag}|{id_}"


def first_looks(index: str, conversation: Scope, added: Sequence[Any], now: float) -> list[Command]:
    """Return what puts the items of a turn into the index, before and after its commit.

    An item that waits for its button is looked at after an hour, or at its own moment if that is
    sooner.
    """
    looks = []
    for id_, _, due_ms, body in added:
        at = due_ms / 1000
        if not due_ms:
            at = now + ANSWER_S
            waiting = WorkItem.of_stored("", f"0|0|0|0|0||{body}".encode())
            if not waiting.needs_zone:
                at = min(at, waiting.planned(waiting.zone, now))
        looks.append(look_at(index, conversation, id_, at, now))
    return looks


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))
