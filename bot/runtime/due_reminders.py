"""Sends reminders that are due: each to one message, as a reply to the request, without a model.

A reminder is delivered as the reply of a turn is: with a lease, marked before it is sent, and not
sent again if Telegram did not answer.
"""

import asyncio
import time
from collections.abc import Callable

import structlog

from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.reply.split import with_line
from bot.runtime.periodic import repeat
from bot.telegram.chat import Destination
from bot.telegram.errors import TelegramError
from bot.turn.deliver import Deliverer
from bot.turn.outbox import Outbox
from bot.turn.patience import Parked
from memory.reminders.reminder import Reminder
from memory.reminders.reminders import Reminders, TakenReminder
from memory.store.errors import LeaseLost, StoreError
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_EVERY_S = 3.0
_AGAIN_S = 1.0
_MAX_CONCURRENT = 8
_MAX_SENDS = 2
"""A reminder whose worker died while sending it is sent once more, never a third time."""
_LATE_S = 300
_PAUSE_S = 60.0
_GRACE_S = 2.0


class DueReminders:
    """Looks for due reminders in every worker, and sends a few at once.

    `serves` says whether a person may use the bot in a chat; the reminders of others wait.
    """

    def __init__(
        self,
        reminders: Reminders,
        deliverer: Deliverer,
        sentences: Sentences,
        lease_s: float,
        serves: Callable[[int, int], bool] = lambda _person, _chat: True,
    ) -> None:
        self._reminders = reminders
        self._deliverer = deliverer
        self._sentences = sentences
        self._lease_s = lease_s
        self._serves = serves
        self._sending: dict[tuple[Scope, str], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Send what becomes due until cancelled; then finish within a grace."""
        try:
            await repeat(self.check, "reminders", _EVERY_S)
        finally:
            tasks = list(self._sending.values())
            if tasks:
                await asyncio.wait(tasks, timeout=_GRACE_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def check(self) -> float:
        """Begin to send what is due now; return when to look again. Raise `StoreError`."""
        if (due_in_s := await self._reminders.due_in_s()) > 0:
            return due_in_s
        for due in await self._reminders.find_due(_MAX_CONCURRENT):
            if due not in self._sending and len(self._sending) < _MAX_CONCURRENT:
                task = asyncio.create_task(self._serve(*due), name=f"reminder {due[1]}")
                self._sending[due] = task
        return _AGAIN_S

    async def _serve(self, conversation: Scope, id_: str) -> None:
        with structlog.contextvars.bound_contextvars(conversation=conversation.tag, reminder=id_):
            try:
                taken = await self._reminders.take(conversation, id_, self._lease_s)
                if taken is not None:
                    await self._send(taken)
            except (LeaseLost, StoreError) as error:
                log.warning("reminder interrupted", reason=type(error).__name__)
            except Exception:  # the outer fence: it is tried again when the lease ends
                log.exception("reminder failed")
            finally:
                del self._sending[conversation, id_]

    async def _send(self, taken: TakenReminder) -> None:
        reminder = taken.reminder
        if not self._serves(reminder.person, reminder.chat_id):
            await self._reminders.postpone(taken, _PAUSE_S)
            return
        next_due = reminder.due_after(time.time())
        if reminder.sends >= _MAX_SENDS:
            log.warning("reminder unknown")
            await self._reminders.close(taken, next_due)
            return

        async def mark(part: int = 0, sent: tuple[int, ...] = ()) -> None:
            del part, sent
            await self._reminders.mark_sending(taken, self._lease_s)

        to = Destination(reminder.chat_id, reminder.topic_id, reminder.message_id)
        await mark()
        try:
            outbox = Outbox(to, (self._part(reminder),))
            delivery = await self._deliverer.deliver(outbox, 0, (), mark)
        except (Parked, TelegramError) as error:
            pause_s = error.pause_s if isinstance(error, Parked) else _PAUSE_S
            log.info("reminder postponed", reason=type(error).__name__, pause_s=pause_s)
            await self._reminders.postpone(taken, pause_s)
            return
        is_gone = delivery.outcome == "undeliverable"
        close = self._reminders.close(taken, 0 if is_gone else next_due)
        await self._deliverer.guard(delivery.chat_id, delivery.in_doubt, close)
        log.info("reminder closed", outcome=delivery.outcome)

    def _part(self, reminder: Reminder) -> Part:
        """Return the text as it was given; below it, if it comes late, when it was due."""
        part = Part(f"⏰ {reminder.text}")
        if time.time() - reminder.due <= _LATE_S:
            return part
        moment = self._sentences.local(reminder.language, reminder.due, reminder.zone)
        (late,) = self._sentences.say(reminder.language, "reminders.late", **moment)
        (whole,) = with_line((part,), late)
        return whole
