"""How a raw update is handed on, whichever way it came: the promise behind telling Telegram.

Telegram hears that an update arrived only after `deliver` has returned.
"""

from collections.abc import Mapping
from typing import Protocol

import structlog

from bot.telegram.errors import UnreadableUpdate
from bot.telegram.health import TelegramHealth

RawUpdate = Mapping[str, object]

log = structlog.get_logger(__name__)


class Accept(Protocol):
    """Takes updates in."""

    async def __call__(self, raw: RawUpdate, /, *, overtakes: bool = False) -> None:
        """Return once the update is stored or known to be nothing for us.

        Raise `NotAccepted` if it cannot be stored now, `UnreadableUpdate` if it never can be. With
        `overtakes` an earlier update was refused, and a message is refused as well.
        """
        ...


async def deliver(
    raw: RawUpdate, accept: Accept, health: TelegramHealth, *, overtakes: bool = False
) -> None:
    """Hand one update on; one that cannot be read is counted, since it would come back for ever."""
    try:
        await accept(raw, overtakes=overtakes)
    except UnreadableUpdate as error:
        health.unreadable_updates += 1
        log.warning("update unreadable", update=error.update_id)
    health.updated()
