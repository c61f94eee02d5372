"""Reads the stream of events in which a server sends an answer, as far as it comes."""

import asyncio
import json
from contextlib import aclosing, suppress

import httpx2

from bot.model.dialects import Accumulator
from bot.model.live_text import live_observer
from bot.model.model_errors import UNREADABLE, AnswerIncomplete, NotAModel
from bot.model.wire import EventReader

_REST_S = 0.1
_REST_BYTES = 64 * 1024
"""A connection can be used again only if its answer is read to the end. We read so much for it."""


async def read_answer(response: httpx2.Response, events: EventReader, answer: Accumulator) -> None:
    """Read a streamed answer and close it; trouble after its finish reason does not count.

    Raise `AnswerIncomplete` when it breaks off, `ContentRefused`, or `NotAModel`.
    """
    try:
        async with aclosing(response):
            await _read_events(response, events, answer)
    except (AnswerIncomplete, NotAModel):
        if not answer.is_complete:
            raise
    except (*UNREADABLE, httpx2.HTTPError) as error:
        if not answer.is_complete:
            raise AnswerIncomplete(type(error).__name__) from error
    if not answer.is_complete:
        kind = response.headers.get("content-type", "").partition(";")[0]
        if answer.is_empty and kind != "text/event-stream":
            # A page, for example, behind a wrong base URL.
            raise NotAModel(f"{kind or 'nothing'} instead of a stream")
        raise AnswerIncomplete("no finish reason")


async def _read_events(response: httpx2.Response, events: EventReader, answer: Accumulator) -> None:
    observe = live_observer()
    async with aclosing(response.aiter_bytes()) as body:
        async for piece in body:
            for event in events.feed(piece):
                # The standard library's parser accepts half an emoji; faster ones refuse it.
                answer.add(json.loads(event))
                if observe:
                    observe(answer.reply)
                if answer.is_over:
                    break
            if events.is_done or answer.is_over:
                break
        bytes_left = _REST_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_S):
                while bytes_left > 0:
                    bytes_left -= len(await anext(body, b"")) or bytes_left
