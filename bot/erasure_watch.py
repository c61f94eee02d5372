"""Drops from this process's memory what any process has erased, in every process of the bot."""

import asyncio

import structlog

from memory.memory import Memory
from memory.store_errors import StoreError

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 0.5


async def watch_erasures(memory: Memory) -> None:
    """Look until cancelled; what could not be read now is read at the next look."""
    while True:
        try:
            await memory.drop_erased()
        except StoreError as error:
            log.warning("erasures not read", reason=type(error).__name__)
        except Exception:  # the outer fence: the next look may pass
            log.exception("erasure watch failed")
        await asyncio.sleep(_LOOK_EVERY_S)
