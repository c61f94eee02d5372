"""Does work that is due: what each kind of it sends goes out as one message, without a model.

A task has a turn instead. The README of `memory/work` has the steps, and what follows a crash.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from bot.commands.notices import mutes
from bot.feature import Feature, Work
from bot.runtime.maintenance import repeat
from bot.telegram.chat import Destination
from bot.telegram.errors import OutcomeUnknown, TelegramError
from bot.telegram.updates import IncomingMessage, to_bytes
from bot.turn.deliver import Deliverer, Delivery, Parked
from bot.turn.observers import PartSent
from bot.turn.outbox import Outbox
from memory.queue.mailbox import Entry
from memory.scopes.scopes import Scopes
from memory.store.errors import LeaseLost, StoreError
from memory.store.keys import Scope
from memory.store.tasks import end_tasks, shielded
from memory.work.item import BEGUN, MAX_CLOSED_S, MAX_WAIT_S, WorkItem
from memory.work.items import TakenWork, WorkItems

log = structlog.get_logger(__name__)

_EVERY_S = 3.0
_AGAIN_S = 1.0
_MAX_CONCURRENT = 8
_MAX_SENDS = 3  # requests in doubt
_SAYING = 0.8  # the share of a lease that `message` may take; the rest is left to count a failure
_MAX_FAILURES = 3  # errors of the code of a kind in one process, a minute apart
_PAUSE_S = 60.0
_DOUBT_S = 10.0  # when an item is sent again whose request Telegram did not answer
_GRACE_S = 2.0


@dataclass(slots=True, eq=False)
class WorkLoop:
    """Looks for due items in every worker, and does a few at once."""

    items: WorkItems
    scopes: Scopes
    features: Sequence[Feature]
    deliverer: Deliverer
    lease_s: float
    # Whether a person may use the bot in a chat; the items of others wait.
    serves: Callable[[int, int], bool] = lambda _person, _chat: True
    _doing: dict[tuple[Scope, str], asyncio.Task[None]] = field(default_factory=dict, init=False)
    _failures: dict[tuple[Scope, str], int] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        """Do what becomes due until cancelled; then finish within a grace."""
        try:
            await repeat(self.check, "work", _EVERY_S)
        finally:
            await end_tasks(self._doing.values(), _GRACE_S)

    async def check(self) -> float:
        """Begin to do what is due now; return when to look again. Raise `StoreError`."""
        if (due_in_s := await self.items.due_in_s()) > 0:
            return due_in_s
        for due in await self.items.find_due(_MAX_CONCURRENT):
            if due not in self._doing and len(self._doing) < _MAX_CONCURRENT:
                self._doing[due] = asyncio.create_task(self._serve(*due), name=f"work {due[1]}")
        return _AGAIN_S

    async def _serve(self, conversation: Scope, id_: str) -> None:
        with structlog.contextvars.bound_contextvars(conversation=conversation.tag, item=id_):
            try:
                if taken := await self.items.take(conversation, id_, self.lease_s):
                    await self._try(taken)
                elif not await self.items.find(conversation, id_):
                    self._failures.pop((conversation, id_), None)  # it was cancelled
            except (LeaseLost, StoreError) as error:
                log.warning("work interrupted", reason=type(error).__name__)
            except Exception:  # nothing is known of it: it is tried again when the lease ends
                log.exception("work failed")
            finally:
                del self._doing[conversation, id_]

    async def _try(self, taken: TakenWork) -> None:
        """Send it; if the code of its kind fails too often, give up until it is due again."""
        item, due = taken.item, (taken.conversation, taken.item.id)
        failures = self._failures.pop(due, 0) + 1
        try:
            await self._send(taken)
        except (LeaseLost, StoreError):
            raise
        except Exception:  # the outer fence: a feature of an operator may raise anything
            if failures < _MAX_FAILURES:
                log.exception("work failed", kind=item.kind)
                self._failures[due] = failures
                await self.items.postpone(taken, _PAUSE_S)
            else:
                log.exception("work given up", kind=item.kind)
                self.deliverer.observe(PartSent("given_up"))
                await self.items.close(taken, self._next_due(item))

    async def _send(self, taken: TakenWork) -> None:
        item = taken.item
        works = ((feature, work) for feature in self.features for work in feature.work)
        found = [each for each in works if each[1].kind == item.kind]
        if not found:  # another worker may know its kind already
            await self._wait(taken)
            return
        if not self.serves(item.person, item.chat_id):
            await self.items.postpone(taken, _PAUSE_S)
            return
        feature, work = found[0]
        next_due = self._next_due(item)
        message = None
        if item.sends < _MAX_SENDS:
            message = await self._message(work, item)  # also if muted: it may plan what comes next
            if message is not None and feature.says_unasked and not item.message_id:
                person = await self.scopes.read(Scope.of_person(item.person))
                message = None if mutes(person) else message
        elif item.sends < BEGUN:
            log.warning("work unknown", kind=item.kind)
        if message is None:
            await self.items.close(taken, next_due)
            return
        if isinstance(message, Outbox):
            await self._say(taken, work, message, next_due)
            return
        entry = Entry(message.update_id, message.sender.id, is_alone=True, body=to_bytes(message))
        if await self.items.close(taken, next_due, entry.to_member()):
            log.info("work done", kind=item.kind, outcome="turn")
        else:  # nothing is kept there now
            await self.items.postpone(taken, _PAUSE_S)

    async def _message(self, work: Work, item: WorkItem) -> Outbox | IncomingMessage | None:
        async with asyncio.timeout(self.lease_s * _SAYING):
            message = await work.message(item)
        if item.topic_id < 0 and isinstance(message, Outbox):
            return replace(message, to=Destination(item.chat_id))
        return message

    async def _say(self, taken: TakenWork, work: Work, message: Outbox, next_due: float) -> None:
        """Send the message and close the item; if its topic is gone, in the chat, and it ends."""
        item = taken.item
        try:
            delivery = await self._deliver(taken, message)
            lost = ("topic_gone",) if next_due else ("topic_gone", "closed")
            if item.topic_id > 0 and delivery.refused in lost:
                next_due, item = 0, replace(item, topic_id=-item.topic_id)
                if isinstance(again := await self._message(work, item), Outbox):
                    delivery = await self._deliver(taken, again)
        except (Parked, TelegramError) as error:
            pause_s = error.pause_s if isinstance(error, Parked) else _PAUSE_S
            log.info("work postponed", reason=type(error).__name__, pause_s=pause_s)
            await self.items.postpone(taken, pause_s)
            return
        except asyncio.CancelledError:
            # No request was sent, or its message was deleted again.
            with suppress(LeaseLost, StoreError):
                await shielded(self.items.postpone(taken, 0))
            raise
        if delivery.outcome == "unknown" and not item.sends:
            log.warning("work in doubt")
            await self.items.postpone(taken, _DOUBT_S, _MAX_SENDS - 1)
            return
        refused = delivery.refused
        waits = item.message_id if refused == "blocked" else refused == "closed" and not next_due
        if waits and self.items.now() - item.due < MAX_CLOSED_S:
            await self._wait(taken)
            return
        if refused in ("chat_gone", "blocked"):
            next_due = 0
        await self.deliverer.guard(delivery.in_doubt, partial(self.items.close, taken, next_due))
        log.info("work done", kind=item.kind, outcome=delivery.outcome)

    def _next_due(self, item: WorkItem) -> float:
        try:
            return item.due_after(self.items.now()) if item.is_open else 0
        except (LookupError, ValueError):  # its rule or zone is none: it is said now, then it ends
            log.exception("work not due again", kind=item.kind)
            return 0

    async def _wait(self, taken: TakenWork) -> None:
        """Look again when the item is twice as late."""
        late_s = self.items.now() - taken.item.due
        await self.items.postpone(taken, min(max(_PAUSE_S, late_s), MAX_WAIT_S))

    async def _deliver(self, taken: TakenWork, outbox: Outbox) -> Delivery:
        """Send it; only a request that Telegram may have carried out counts as a try."""

        async def hold(*_: object) -> None:
            await self.items.hold(taken, self.lease_s)

        @asynccontextmanager
        async def requesting() -> AsyncIterator[None]:
            await self.items.hold(taken, self.lease_s, taken.item.sends + 1)
            try:
                yield
            except TelegramError as error:
                if not isinstance(error, OutcomeUnknown):
                    await hold()
                raise

        return await self.deliverer.deliver(outbox, 0, (), hold, requesting)
