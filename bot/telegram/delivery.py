"""How a raw update is handed on, whichever way it came: the promise behind telling Telegram.

Telegram hears that an update arrived only after `deliver` has returned.
"""

from collections.abc import Awaitable, Callable, Mapping

import structlog

from bot.telegram.errors import UnreadableUpdate
from bot.telegram.health import TelegramHealth

RawUpdate = Mapping[str, object]

# Returns once the update is stored or known to be nothing for us; raises `NotTaken` when it cannot
# be stored now, `UnreadableUpdate` when it never will be.
Accept = Callable[[RawUpdate], Awaitable[None]]

log = structlog.get_logger(__name__)


async def deliver(raw: RawUpdate, accept: Accept, health: TelegramHealth) -> None:
    """Hand one update on; one that cannot be read is counted, since it would come back for ever."""
    try:
        await accept(raw)
    except UnreadableUpdate as error:
        health.unreadable_updates += 1
        log.warning("update unreadable", update=error.update_id)
    health.updated()
