"""Edits that Telegram's ban on a chat held up: made when it is over, of each message the newest.

In memory only, and not many: what is given up can be had by pressing again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from bot.reply.parts import Part
from bot.telegram.backoff import Pause
from bot.telegram.errors import FloodWait, TelegramError

log = structlog.get_logger(__name__)

_MAX_WAITING = 200
_TRIES = 5
_LONGEST_S = 300.0

Edit = Callable[[int, int, Part], Awaitable[None]]
"""Replaces a message of ours by chat and message id; raises `TelegramError`."""

_Place = tuple[int, int]


class LateEdits:
    """Edits at once where that is allowed, else in the background."""

    def __init__(self, edit: Edit, pause: Pause = asyncio.sleep) -> None:
        self._edit = edit
        self._pause = pause
        self._waiting: dict[_Place, asyncio.Task[None]] = {}

    async def edit(self, chat_id: int, message_id: int, part: Part) -> None:
        """Replace a message of ours, now or after the ban; what still waits for it is void.

        Raise `TelegramError`, a `FloodWait` only where too much waits already.
        """
        place = (chat_id, message_id)
        self._drop(place)
        try:
            await self._edit(chat_id, message_id, part)
        except FloodWait as ban:
            if len(self._waiting) >= _MAX_WAITING:
                raise
            self._drop(place)
            task = asyncio.create_task(self._later(place, part, ban))
            task.add_done_callback(partial(self._forget, place))
            self._waiting[place] = task

    async def stop(self) -> None:
        """Give up what waits."""
        waiting = list(self._waiting.values())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _drop(self, place: _Place) -> None:
        if place in self._waiting:
            self._waiting.pop(place).cancel()

    async def _later(self, place: _Place, part: Part, ban: FloodWait) -> None:
        try:
            await self._after(ban, place, part)
        except TelegramError as error:
            log.warning("late edit given up", reason=type(error).__name__)

    def _forget(self, place: _Place, task: asyncio.Task[None]) -> None:
        if self._waiting.get(place) is task:
            del self._waiting[place]

    async def _after(self, ban: FloodWait, place: _Place, part: Part) -> None:
        """Edit after the ban and those that follow it; raise the last, or another refusal."""
        waited_s = 0.0
        for _ in range(_TRIES):
            waited_s += ban.retry_after_s
            if waited_s > _LONGEST_S:
                break
            await self._pause(ban.retry_after_s)
            try:
                return await self._edit(*place, part)
            except FloodWait as another:
                ban = another
        raise ban
