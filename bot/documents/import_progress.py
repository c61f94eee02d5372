"""Shows in the message of the pressed button how far an import is, in percent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog

from bot.commands.sentences import Sentences
from bot.documents.import_selection import Report
from bot.telegram.chat import Chat
from bot.telegram.errors import TelegramError
from bot.telegram.updates import IncomingMessage
from memory.store.errors import StoreError

log = structlog.get_logger(__name__)

_EVERY_S = 2.0
"""An import that takes less shows nothing; Telegram limits how often a message is edited."""


class ImportProgress:
    """Edits the message every few seconds while an import is prepared and stored."""

    def __init__(self, chat: Chat, sentences: Sentences, every_s: float = _EVERY_S) -> None:
        self._chat = chat
        self._sentences = sentences
        self._every_s = every_s

    @asynccontextmanager
    async def shown(self, agreed: IncomingMessage) -> AsyncIterator[Report]:
        """Yield a function that takes the percent, from any thread.

        The message whose button was pressed shows it, and 100 at the end if it has shown any.
        """
        reported, shown = [0], [0]
        showing = asyncio.create_task(self._show(agreed, reported, shown))
        try:
            yield reported.append
        finally:
            showing.cancel()
            with suppress(asyncio.CancelledError):
                await showing
        if shown[-1]:
            await self._edit(agreed, 100)

    async def _show(self, agreed: IncomingMessage, reported: list[int], shown: list[int]) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            if reported[-1] > shown[-1]:
                shown.append(reported[-1])
                await self._edit(agreed, shown[-1])

    async def _edit(self, agreed: IncomingMessage, percent: int) -> None:
        """Show the percent; the import does not depend on it."""
        language = agreed.sender.language
        *_, part = self._sentences.say(language, "import.progress", percent=percent)
        try:
            await self._chat.edit(agreed.chat_id, agreed.message_id, part)
        except (TelegramError, StoreError) as error:
            log.info("progress not shown", reason=type(error).__name__)
