"""Puts memories where learning would have put them, for scenarios about what becomes of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory.embeddings import QuestionVectors
from memory.keys import Conversation, Keys
from memory.notebook.notebook import Notebook
from memory.notebook.notebooks import Notebooks, Writing
from memory.notebook.records import Entry, Fact, Source, Synopsis
from memory.protocol.scripts import Scripts
from memory.protocol.store import Store
from memory.redis_client import RedisClient
from tests.acceptance.rig import Rig

_TTL_S = 86_400


async def plant(
    rig: Rig, scope: Conversation, *entries: Entry, redis: str = "", **fields: str
) -> None:
    """Write entries and new fields into a notebook of the bot's."""
    async with _notebooks(rig, redis) as notebooks:
        notebook = await notebooks.read(scope)
        named = {name: (notebook.fields.get(name, ""), value) for name, value in fields.items()}
        await notebooks.write(notebook, Writing(entries, named))


async def stored_notebook(rig: Rig, scope: Conversation) -> Notebook:
    """Return a notebook of the bot's as it is stored."""
    async with _notebooks(rig, "") as notebooks:
        return await notebooks.read(scope)


def fact(text: str, seq: int, here: Conversation, sender: int) -> Fact:
    """Return a fact that rests on one message."""
    return Fact(0, text, (Source(here.tag, seq, 0, sender),), said_at=86_400)


def synopsis(text: str, seqs: tuple[int, int], here: Conversation) -> Synopsis:
    """Return a synopsis of two days."""
    first, last = seqs
    return Synopsis(
        id=0,
        likely_request=text,
        actions="",
        result="",
        behaviour="",
        emotions="",
        preferences="",
        reasoning="",
        began_at=86_400,
        ended_at=172_800,
        first_seq=first,
        last_seq=last,
        tag=here.tag,
    )


@asynccontextmanager
async def _notebooks(rig: Rig, redis: str) -> AsyncIterator[Notebooks]:
    client = await RedisClient.open(redis or rig.environment["REDIS_URL"])
    store = Store(client, Keys(rig.telegram.bot.id), Scripts(client), asyncio.Event(), _TTL_S)
    yield Notebooks(store, QuestionVectors(None), most_bytes=1_000_000)
    await client.close()
