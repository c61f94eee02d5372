"""Looks at something again and again while the process lives."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from memory.store.errors import StoreError

log = structlog.get_logger(__name__)


async def repeat(look: Callable[[], Awaitable[object]], what: str, every_s: float) -> None:
    """Call `look` every `every_s` seconds until cancelled; a look that fails ends nothing.

    `what` names in the log what could not be watched.
    """
    while True:
        try:
            await look()
        except StoreError as error:
            log.warning("not watched", what=what, reason=type(error).__name__)
        except Exception:  # the outer fence: the next look may pass
            log.exception("watch failed", what=what)
        await asyncio.sleep(every_s)
