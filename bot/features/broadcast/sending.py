"""Sends the announcement of an operator to its chats, and shows how far it is.

Each chat gets at most one copy. A chat is marked right before its request. If Telegram does not
answer then, or the worker dies, nothing is repeated. A chat without a mark gets its copy later.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog

from bot.commands.erasing import show_receipt
from bot.commands.sentences import Sentences
from bot.features.broadcast.announcements import (
    Announcement,
    AnnouncementProgress,
    AnnouncementRun,
    Announcements,
    Outcome,
    Pause,
)
from bot.reply.parts import Button, Part
from bot.telegram.admission import Admission
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import (
    Blocked,
    ChatMigrated,
    FloodWait,
    OutcomeUnknown,
    Refused,
    TelegramError,
)
from memory.store.errors import LeaseLost, StoreError

log = structlog.get_logger(__name__)

STOP, MUTE = "stop_broadcast", "mute"  # the buttons below the progress, and below each copy
_OPEN_EVERY_S = 2.0
_SHOW_EVERY_S = 3.0
_TROUBLE_S = 10.0  # how long to wait if Telegram cannot be reached
_GRACE_S = 2.0
_SOURCE_GONE = ("message_gone", "not_copied")
"""Refusals that are about the message, so every other chat would get the same."""
_Sent = tuple[Outcome, Pause | None]  # how a sending ended; for "later", who waits for how long


class BroadcastStatus:
    """The operator's message that shows the question, then the progress, then the receipt."""

    def __init__(self, chat: Chat, sentences: Sentences) -> None:
        self._chat = chat
        self._sentences = sentences

    async def show(self, progress: AnnouncementProgress) -> None:
        """Show how many chats are done, with a button that stops the rest."""
        about = progress.announcement
        key = "broadcast.progress" if progress.total else "broadcast.begins"
        counts = {"done": progress.done, "total": progress.total}
        part, *_ = self._sentences.say(about.language, key, **counts)
        label = self._sentences.text(about.language, "buttons.stop_broadcast")
        part = replace(part, buttons=((Button(label, f"{STOP}:{about.id}"),),))
        try:
            await self._chat.edit(about.chat_id, about.status_id, part)
        except TelegramError as error:
            log.info("progress not shown", reason=type(error).__name__)

    async def report(self, progress: AnnouncementProgress) -> None:
        """Show the receipt; raise `TelegramError` to try again."""
        about, total = progress.announcement, progress.total or 0
        key = f"broadcast.{progress.why_ended or 'done'}"
        counts = {"total": total, "left": total - progress.done, **progress.counts}
        part, *_ = self._sentences.say(about.language, key, "broadcast.counts", **counts)
        await show_receipt(self._chat, Destination(about.chat_id), about.status_id, part)


class HalfRate:
    """Permits for copies at half of the rate of the bot, so that it goes on answering people."""

    def __init__(
        self, chat: Chat, per_second: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._chat = chat
        self._now = clock
        self._every_s = 2 / per_second if per_second else 0.0  # a rate of 0 is no limit
        self._free_at = 0.0

    async def waits(self, chat_id: int) -> AsyncIterator[float]:
        """Take a permit for one copy; yield each wait in seconds, as `Chat.waits` does."""
        now = self._now()
        self._free_at = max(now, self._free_at)
        yield self._free_at - now
        self._free_at += self._every_s
        async for wait_s in self._chat.waits(chat_id):
            yield wait_s


@dataclass(slots=True, eq=False)
class Announcing:
    """Looks for an announcement in every worker; one worker at a time sends it."""

    announcements: Announcements
    chat: Chat
    permits: HalfRate
    admission: Admission
    sentences: Sentences
    _shown_at: float = field(default=0.0, init=False)

    async def check(self) -> float | None:
        """Send the announcement if there is one and no other worker does; raise `StoreError`.

        Return when to look again, None without an announcement.
        """
        if not await self.announcements.is_open():
            return None
        if run := await self.announcements.take(self.admission.settings.lease_s):
            try:
                await self._carry_out(run)
            except LeaseLost:
                log.warning("announcement interrupted")
            finally:
                with suppress(StoreError):
                    await run.lease.release()
        return _OPEN_EVERY_S

    async def _carry_out(self, run: AnnouncementRun) -> None:
        progress, status = await run.read(), BroadcastStatus(self.chat, self.sentences)
        about = progress.announcement
        if progress.total is None:
            await self.admission.members.refresh()  # this process may know nobody yet
            serves = self.admission.serves_person
            await run.collect(lambda chat: serves(chat) and chat != about.chat_id)
        # The outcome counts only for a chat that this run was given.
        chat = await run.next_chat(0, "unknown")
        while chat:
            outcome, pause = await self._send(run, about, chat)
            chat = await run.next_chat(chat, outcome, pause)
            if time.monotonic() - self._shown_at > _SHOW_EVERY_S:
                self._shown_at = time.monotonic()
                await status.show(await run.read())
        if chat is None:
            return
        progress = await run.read()
        try:
            await status.report(progress)
        except TelegramError as error:
            log.warning("receipt postponed", reason=type(error).__name__)
            await run.close(error.retry_after_s if isinstance(error, FloodWait) else _TROUBLE_S)
        else:
            await run.close()
            log.info("announcement ended", why=progress.why_ended or "done", **progress.counts)

    async def _send(self, run: AnnouncementRun, about: Announcement, chat: int) -> _Sent:
        """Send to one chat; if this worker is stopped meanwhile, store what has become of it."""
        if await self.announcements.is_muted(chat):
            return "muted", None
        try:
            async for wait_s in self.permits.waits(chat):
                await asyncio.sleep(wait_s)
                await run.lease.renew()
        except FloodWait as ban:
            return "later", Pause(ban.retry_after_s)
        copying = asyncio.ensure_future(self._copy(run, about, chat))
        try:
            return await asyncio.shield(copying)
        except asyncio.CancelledError:
            await asyncio.wait([copying], timeout=_GRACE_S)
            outcome: Outcome = "unknown"
            if copying.done() and not copying.exception():
                outcome, _ = copying.result()
            copying.cancel()
            # If this fails too, the next worker counts a marked chat as unknown.
            with suppress(StoreError, LeaseLost):
                await run.next_chat(chat, outcome)
            raise

    async def _copy(self, run: AnnouncementRun, about: Announcement, chat: int) -> _Sent:
        button = Button(self.sentences.text(about.language, "buttons.mute"), f"{MUTE}:")
        copy = Part("", buttons=((button,),), copy_of=(about.chat_id, about.message_id))
        if not await run.open_chat(chat):
            return "later", None  # it was forgotten meanwhile
        try:
            await self.chat.send(Destination(chat), copy, self.admission.settings.send_timeout_s)
        except TelegramError as error:
            outcome, pause = _sent(error)
            if pause:
                log.warning("announcement waits", reason=type(error).__name__, wait_s=pause.wait_s)
            if isinstance(error, Refused) and error.reason in _SOURCE_GONE:
                await self.announcements.stop(about.id, "source_gone")
            return outcome, pause
        return "sent", None


def _sent(error: TelegramError) -> _Sent:
    match error:
        case FloodWait():
            return "later", Pause(error.retry_after_s, "ban")
        case Blocked():
            return "gone", None
        case OutcomeUnknown():
            return "unknown", None
        case Refused() if error.reason in _SOURCE_GONE:
            return "later", None
        case Refused() | ChatMigrated():
            return "refused", None
    return "later", Pause(_TROUBLE_S, "away")
