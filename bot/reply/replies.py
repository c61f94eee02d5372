"""A reply of any length and form as a bounded number of parts, without holding the event loop.

The model writes what people ask it to, so nothing is assumed of a reply.
"""

import asyncio

import structlog

from bot.reply.parts import Part
from bot.reply.render import plain, render
from bot.reply.split import MAX_UTF16

log = structlog.get_logger(__name__)

MAX_PARTS = 8
MAX_CHARS = MAX_PARTS * MAX_UTF16
"""Characters of a reply that are shown and kept; what follows is left out."""

_SHORT = 2000
"""Characters that are rendered at once: at most some 20 ms."""

_TIME_LIMIT_S = 5.0


async def reply_parts(markdown: str) -> tuple[tuple[Part, ...], bool]:
    """Return at most `MAX_PARTS` parts, and whether they show the whole reply.

    If they do not, there is room for one more part, which should say so.
    """
    source = markdown[:MAX_CHARS]
    parts = await _rendered(source)
    if len(parts) <= MAX_PARTS and len(source) == len(markdown):
        return parts, True
    return parts[: MAX_PARTS - 1], False


async def _rendered(source: str) -> tuple[Part, ...]:
    if len(source) <= _SHORT:
        return render(source)
    try:
        async with asyncio.timeout(_TIME_LIMIT_S):
            return await asyncio.to_thread(render, source)
    except TimeoutError:
        log.warning("reply shown without formatting: rendering took too long", chars=len(source))
        return plain(source)
