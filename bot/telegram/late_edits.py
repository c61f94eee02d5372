"""Edits that a ban on the chat held up are made when the ban is over.

They are kept in memory only, the newest for each message, and not many. A lost edit does no harm,
because pressing the button again shows it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from bot.reply.parts import Part
from bot.telegram.connection import Pause
from bot.telegram.errors import FloodWait, TelegramError
from memory.store.tasks import end_tasks

log = structlog.get_logger(__name__)

_MAX_WAITING = 200
_MAX_TRIES = 5
_MAX_WAIT_S = 300.0

Edit = Callable[[int, int, Part], Awaitable[None]]
"""Replaces a message of ours by chat and message id; raises `TelegramError`."""

_MessageKey = tuple[int, int]


class LateEdits:
    """Edits at once if the chat is open, otherwise in the background."""

    def __init__(self, edit: Edit, pause: Pause = asyncio.sleep) -> None:
        self._edit = edit
        self._pause = pause
        self._waiting: dict[_MessageKey, asyncio.Task[None]] = {}

    async def edit(self, chat_id: int, message_id: int, part: Part) -> None:
        """Replace a message of ours, now or after the ban; drop an older edit that still waits.

        Raise `TelegramError`, but `FloodWait` only if too many edits wait already.
        """
        key = (chat_id, message_id)
        self._drop(key)
        try:
            await self._edit(chat_id, message_id, part)
        except FloodWait as ban:
            if len(self._waiting) >= _MAX_WAITING:
                raise
            self._drop(key)
            task = asyncio.create_task(self._edit_later(key, part, ban))
            task.add_done_callback(partial(self._forget, key))
            self._waiting[key] = task

    async def stop(self) -> None:
        """Drop the edits that wait."""
        await end_tasks(self._waiting.values())

    def _drop(self, key: _MessageKey) -> None:
        if key in self._waiting:
            self._waiting.pop(key).cancel()

    def _forget(self, key: _MessageKey, task: asyncio.Task[None]) -> None:
        if self._waiting.get(key) is task:
            del self._waiting[key]

    async def _edit_later(self, key: _MessageKey, part: Part, ban: FloodWait) -> None:
        """Try again after each ban, until `_MAX_TRIES` or `_MAX_WAIT_S` is reached."""
        error: TelegramError = ban
        waited_s = 0.0
        for _ in range(_MAX_TRIES):
            waited_s += ban.retry_after_s
            if waited_s > _MAX_WAIT_S:
                break
            await self._pause(ban.retry_after_s)
            try:
                await self._edit(*key, part)
            except FloodWait as another:
                error = ban = another
            except TelegramError as refusal:
                error = refusal
                break
            else:
                return
        log.warning("late edit dropped", reason=type(error).__name__)
