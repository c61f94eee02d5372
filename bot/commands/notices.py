"""What admins are told unasked: a plan that fills up, what was dropped, a budget, failing models.

In private, in the language in which an admin last used an admin command.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import structlog

from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import FloodWait, TelegramError, Unreachable
from memory.limits.alerts import News
from memory.limits.dropping import Dropped
from memory.limits.fill_level import FillLevel
from memory.memory import Memory

log = structlog.get_logger(__name__)

_DEFAULT_LANGUAGE = b"en"


class AdminNotices:
    """Tells all admins; one who never wrote to the bot, or blocked it, cannot be told."""

    def __init__(
        self, memory: Memory, sentences: Sentences, telegram: Chat, admins: frozenset[int]
    ) -> None:
        self._client = memory.client
        self._languages = memory.keys.admins
        self._sentences = sentences
        self._telegram = telegram
        self._admins = sorted(admins)

    async def tell(self, news: News, filling: FillLevel) -> bool:
        """Tell them; false when some could have been reached later and nobody was now."""
        return await self.say(f"notices.{news.kind}", figures(filling, news.dropped))

    async def tell_of_model(self, kind: str, reason: str, look_at: str) -> bool:
        """Tell them that a model has failed for a while, or is back; the same answer."""
        return await self.say(f"notices.{kind}", {"reason": reason, "look_at": look_at or "–"})

    async def say(self, key: str, values: Mapping[str, object]) -> bool:
        """Tell them a sentence; false when some could have been reached later and nobody was."""
        log.warning("news for admins", kind=key.partition(".")[2], admins=len(self._admins))
        if not self._admins:
            return True
        languages = await self._client.call("HMGET", self._languages, *self._admins)
        is_done = False
        for admin, language in zip(self._admins, languages, strict=True):
            spoken = (language or _DEFAULT_LANGUAGE).decode()
            parts = self._sentences.say(spoken, key, **values)
            is_done |= await self._send(admin, parts)
        return is_done

    async def _send(self, admin: int, parts: Sequence[Part]) -> bool:
        """Send in private; false when the same may pass later."""
        try:
            for part in parts:
                async for wait_s in self._telegram.waits(admin):
                    await asyncio.sleep(wait_s)
                await self._telegram.send(Destination(admin), part)
        except TelegramError as error:
            log.warning("admin not told", user=admin, reason=type(error).__name__)
            return not isinstance(error, Unreachable | FloodWait)
        return True


def figures(filling: FillLevel, dropped: Dropped) -> dict[str, float]:
    """Return the values that sentences about the plan show."""
    return {
        "used_mb": round(filling.used / 2**20, 1),
        "limit_mb": round(filling.limit / 2**20, 1),
        "percent": round(100 * filling.share),
        **asdict(dropped),
    }
