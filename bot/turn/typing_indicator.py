"""Shows "typing", or a draft of the reply, and limits how long the slow steps of a turn take."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Protocol

from bot.model.call import SoFar, watching
from bot.telegram.chat import Chat
from bot.telegram.errors import TelegramError
from bot.turn.request import Request
from memory.store.tasks import end_tasks


class Draft(Protocol):
    """Shows the reply of one run while it is written."""

    is_shown: bool  # the person sees it, so that "typing" is not needed

    def watch(self, so_far: SoFar) -> None:
        """Take an answer that grows."""
        ...

    async def keep_growing(self) -> None:
        """Show what is written until cancelled; raise nothing else."""
        ...


DraftOf = Callable[[Request], Draft | None]
"""Returns the draft of a turn, None where there is none."""

_TYPING_EVERY_S = 4.5
"""Telegram shows it for five seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class TypingIndicator:
    """Shows "typing" or a draft, and limits how long the slow steps of a turn take.

    All slow steps of a run have `timeout_s` together, from the beginning of the first one.
    """

    chat: Chat
    timeout_s: float
    draft_of: DraftOf = lambda _: None

    @asynccontextmanager
    async def shown(self, request: Request) -> AsyncIterator[None]:
        """Show what is done until the block ends; raise `TimeoutError` at the turn's deadline."""
        run, draft = request.run, self.draft_of(request)
        run.ends_at = run.ends_at or asyncio.get_running_loop().time() + self.timeout_s

        async def keep_typing() -> None:
            """Give up when a call fails: the reply matters, this does not."""
            with suppress(TelegramError):
                while not request.last.is_task:  # a task may have nothing to say
                    if draft is None or not draft.is_shown:
                        await self.chat.show_typing(request.to)
                    await asyncio.sleep(_TYPING_EVERY_S)

        showing = [keep_typing(), draft.keep_growing()] if draft else [keep_typing()]
        tasks = [asyncio.create_task(each) for each in showing]
        try:
            with watching(draft.watch) if draft else nullcontext():
                async with asyncio.timeout_at(run.ends_at):
                    yield
        finally:
            await end_tasks(tasks)
