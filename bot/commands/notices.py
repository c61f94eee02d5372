"""What operators are told without asking, and whether a person wants to be told anything unasked.

Operators are told the news of features: in private, in the language of an operator's last `/start`
or admin command. Features send people announcements and tips.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from bot.commands.access import Operators
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part, with_buttons
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import FloodWait, TelegramError, Unreachable
from memory.limits.capacity import FillLevel
from memory.scopes.changes import Write
from memory.scopes.fields import Field
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import never_erased
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


class OperatorNotices:
    """Tells every operator; one who never wrote to the bot, or blocked it, cannot be told."""

    def __init__(self, operators: Operators, chat: Chat, sentences: Sentences) -> None:
        self._operators = operators
        self._chat = chat
        self._sentences = sentences

    async def say(
        self, key: str, values: Mapping[str, object], buttons: Mapping[str, str] | None = None
    ) -> bool:
        """Tell a sentence; return false if nobody was reached and trying again may help.

        `buttons` has the callback data of each button by the key of its label. Raise `StoreError`.
        """
        languages = await self._operators.languages()
        log.warning("news for admins", kind=key.partition(".")[2], admins=len(languages))
        is_done = not languages
        for operator, language in languages.items():
            parts = self._sentences.say(language, key, **values)
            labels = (buttons or {}).items()
            row = (Button(self._sentences.text(language, label), does) for label, does in labels)
            is_done |= await self._send(operator, with_buttons(parts, *row))
        return is_done

    async def _send(self, operator: int, parts: Sequence[Part]) -> bool:
        """Send in private; return false if the same may succeed later."""
        try:
            for part in parts:
                async for wait_s in self._chat.waits(operator):
                    await asyncio.sleep(wait_s)
                await self._chat.send(Destination(operator), part)
        except TelegramError as error:
            log.warning("admin not told", user=operator, reason=type(error).__name__)
            return not isinstance(error, Unreachable | FloodWait)
        return True


def figures(fill_level: FillLevel) -> dict[str, float]:
    """Return the values in sentences about the capacity of Redis."""
    return {
        "used_mb": fill_level.used / 2**20,
        "limit_mb": fill_level.limit / 2**20,
        "percent": round(100 * fill_level.share),
    }


@dataclass(frozen=True, slots=True)
class Mute(Field):
    """In a person's scope: whether they want nothing unasked, and which update said so last."""

    PREFIX = "mute"
    is_muted: bool
    by_update: int

    without = never_erased


def mutes(person: ScopeMemory) -> bool:
    """Return whether a person wants nothing unasked."""
    found = person.get(Mute)
    return found is not None and found.is_muted


async def set_mute(scopes: Scopes, person: int, update_id: int, *, is_muted: bool) -> None:
    """Store what a person wants, once for each update; raise `StoreError`."""

    async def decide(here: ScopeMemory) -> Write | None:
        known = here.get(Mute)
        if known and known.by_update == update_id:
            return None
        return Write(fields=[Mute(is_muted, update_id)])

    await scopes.update(Scope.of_person(person), decide)
