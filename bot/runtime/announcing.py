"""Sends the announcement of an operator to its chats, and shows how far it is.

Each chat gets at most one copy. Nothing is repeated if Telegram did not answer or a worker died.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Protocol

import structlog

from bot.commands.broadcast import BroadcastStatus, IsMember
from bot.runtime.periodic import repeat
from bot.telegram.copies import CopiedMessage
from bot.telegram.errors import (
    Blocked,
    ChatMigrated,
    FloodWait,
    OutcomeUnknown,
    Refused,
    TelegramError,
)
from memory.memory import Memory
from memory.queue.announcements import Announcement, AnnouncementRun, Outcome
from memory.store.errors import LeaseLost, StoreError
from memory.store.store import ANNOUNCEMENTS

log = structlog.get_logger(__name__)

_EVERY_S = 15.0
_OPEN_EVERY_S = 2.0
_SHOW_EVERY_S = 3.0
_TROUBLE_S = 10.0
"""How long to wait if Telegram cannot be reached."""
_GRACE_S = 2.0
_SOURCE_GONE = ("message_gone", "not_copied")
"""Refusals that are about the message, so every other chat would get the same."""

_Sent = tuple[Outcome, float]
"""How the sending to a chat ended; and for "later", how many seconds everything waits."""


class CopiesMessages(Protocol):
    """What `bot.telegram.copies.Copier` does."""

    def waits(self, chat_id: int) -> AsyncIterator[float]:
        """Take a permit for one copy; yield each wait in seconds."""
        ...

    async def copy(self, message: CopiedMessage, chat_id: int) -> None:
        """Copy a message to a chat, once."""
        ...


class Announcing:
    """Looks for an announcement in every worker; one worker at a time sends it."""

    def __init__(
        self,
        memory: Memory,
        copier: CopiesMessages,
        status: BroadcastStatus,
        is_member: IsMember,
        lease_s: float,
    ) -> None:
        self._announcements = memory.announcements
        self._noted = memory.noted[ANNOUNCEMENTS]
        self._audience = memory.audience
        self._access = memory.access
        self._copier = copier
        self._status = status
        self._is_member = is_member
        self._lease_s = lease_s
        self._shown_at = 0.0

    async def run(self) -> None:
        """Send what operators have confirmed until cancelled."""
        await repeat(self.check, "announcement", _EVERY_S, self._noted)

    async def check(self) -> float:
        """Send the announcement if there is one and no other worker does; raise `StoreError`.

        Return when to look again.
        """
        if not await self._announcements.is_open():
            return _EVERY_S
        if run := await self._announcements.take(self._lease_s):
            try:
                await self._carry_out(run)
            except LeaseLost:
                log.warning("announcement interrupted")
            finally:
                with suppress(StoreError):
                    await run.release()
        return _OPEN_EVERY_S

    async def _carry_out(self, run: AnnouncementRun) -> None:
        progress = await run.read()
        about = progress.announcement
        if progress.total is None:
            await self._access.refresh()  # `is_member` may know nobody yet
            await run.collect(lambda chat: self._is_member(chat) and chat != about.chat_id)
        # The outcome counts only for a chat that this run was given.
        chat = await run.next_chat(0, "unknown")
        while chat:
            outcome, wait_s = await self._send(run, about, chat)
            chat = await run.next_chat(chat, outcome, wait_s)
            if time.monotonic() - self._shown_at > _SHOW_EVERY_S:
                self._shown_at = time.monotonic()
                await self._status.show(await run.read())
        if chat == 0:
            await self._end(run)

    async def _send(self, run: AnnouncementRun, about: Announcement, chat: int) -> _Sent:
        """Send to one chat; if this worker is stopped, store what has become of the chat."""
        try:
            if await self._audience.is_muted(chat):
                return "muted", 0
            async for wait_s in self._copier.waits(chat):
                await asyncio.sleep(wait_s)
                await run.renew()
        except FloodWait as ban:
            return "later", ban.retry_after_s
        except asyncio.CancelledError:
            await _leave(run, chat, "later")
            raise
        copying = asyncio.ensure_future(self._copy(about, chat))
        try:
            return await asyncio.shield(copying)
        except asyncio.CancelledError:
            await asyncio.wait([copying], timeout=_GRACE_S)
            outcome: Outcome = copying.result()[0] if copying.done() else "unknown"
            copying.cancel()
            await _leave(run, chat, outcome)
            raise

    async def _copy(self, about: Announcement, chat: int) -> _Sent:
        button = self._status.mute_button(about.language)
        try:
            await self._copier.copy(CopiedMessage(about.chat_id, about.message_id, button), chat)
        except TelegramError as error:
            sent = _sent(error)
            if sent[0] == "later":
                log.warning("announcement waits", reason=type(error).__name__, wait_s=sent[1])
            if isinstance(error, Refused) and error.reason in _SOURCE_GONE:
                await self._announcements.stop(about.id, "source_gone")
            return sent
        return "sent", 0

    async def _end(self, run: AnnouncementRun) -> None:
        """Show the receipt, now or when Telegram takes it."""
        progress = await run.read()
        try:
            await self._status.report(progress)
        except TelegramError as error:
            log.warning("receipt postponed", reason=type(error).__name__)
            await run.close(error.retry_after_s if isinstance(error, FloodWait) else _TROUBLE_S)
            return
        await run.close()
        log.info("announcement ended", why=progress.why_ended or "done", **progress.counts)


async def _leave(run: AnnouncementRun, chat: int, outcome: Outcome) -> None:
    """Store what has become of a chat; if that fails, the next worker counts it as unknown."""
    with suppress(StoreError, LeaseLost):
        await run.leave(chat, outcome)


def _sent(error: TelegramError) -> _Sent:
    """Return what an error means for the chat that was being sent to."""
    sent: _Sent = ("later", _TROUBLE_S)
    match error:
        case FloodWait():
            sent = "later", error.retry_after_s
        case Blocked():
            sent = "gone", 0
        case OutcomeUnknown():
            sent = "unknown", 0
        case Refused() if error.reason in _SOURCE_GONE:
            sent = "later", 0
        case Refused() | ChatMigrated():
            sent = "refused", 0
    return sent
