"""Shows "typing" or a draft while a person waits for a reply, and bounds how long they wait."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bot.model.call import watching
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import TelegramError
from bot.turn.draft import Draft
from bot.turn.request import Request
from memory.store.tasks import end_tasks

_EVERY_S = 4.5
"""Telegram shows it for five seconds."""


class TypingIndicator:
    """Shows "typing", and limits how long the slow steps of a turn take.

    They have `timeout_s` together, from the beginning of the first one. `draft_of` returns the
    draft that shows a reply as it grows, None where there is none.
    """

    def __init__(
        self,
        chat: Chat,
        timeout_s: float,
        draft_of: Callable[[Request], Draft | None] = lambda _: None,
    ) -> None:
        self._chat = chat
        self._timeout_s = timeout_s
        self._draft_of = draft_of

    @asynccontextmanager
    async def answering(self, request: Request) -> AsyncIterator[None]:
        """Show what the model writes until the block ends, and "typing" before; see `shown`."""
        draft = self._draft_of(request)
        if draft is None:
            async with self.shown(request):
                yield
            return
        growing = asyncio.create_task(draft.keep_growing())
        try:
            with watching(draft.watch):
                async with self.shown(request, draft):
                    yield
        finally:
            await end_tasks([growing])

    @asynccontextmanager
    async def shown(self, request: Request, draft: Draft | None = None) -> AsyncIterator[None]:
        """Show "typing" until the block ends; raise `TimeoutError` at the turn's deadline."""
        run = request.run
        run.ends_at = run.ends_at or asyncio.get_running_loop().time() + self._timeout_s
        to = None if request.last.is_task else request.to  # it may have nothing to say
        task = asyncio.create_task(self._keep_typing(to, draft))
        try:
            async with asyncio.timeout_at(run.ends_at):
                yield
        finally:
            await end_tasks([task])

    async def _keep_typing(self, to: Destination | None, draft: Draft | None) -> None:
        """Give up at the first refusal: the reply matters, this does not."""
        try:
            while to:
                if draft is None or not draft.is_shown:
                    await self._chat.show_typing(to)
                await asyncio.sleep(_EVERY_S)
        except TelegramError:
            return
