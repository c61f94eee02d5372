"""Stores memories as learning would, for scenarios about their later life."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory.scopes.changes import Write
from memory.scopes.entries import Fact, ScopeEntry, Synopsis
from memory.scopes.fields import Field
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Source
from memory.search.embeddings import QuestionVectors
from memory.store.keys import Scope
from memory.store.store import Scripts, Store
from tests.acceptance.rig import Rig
from tests.valkey import opened

_TTL_S = 86_400


async def plant(rig: Rig, scope: Scope, *parts: ScopeEntry | Field) -> None:
    """Write entries and fields into a scope of the bot."""
    async with _scopes(rig) as scopes:
        scope_memory = await scopes.read(scope)
        entries = [part for part in parts if isinstance(part, ScopeEntry)]
        fields = [part for part in parts if isinstance(part, Field)]
        await scopes.write(scope_memory, Write(entries, fields))


async def stored_memory(rig: Rig, scope: Scope) -> ScopeMemory:
    async with _scopes(rig) as scopes:
        return await scopes.read(scope)


def fact(text: str, seq: int, here: Scope, sender: int) -> Fact:
    """Return a fact that was learned from one message."""
    return Fact(0, text, (Source(here.tag, seq, 0, sender),), said_at=86_400)


def synopsis(text: str, seqs: tuple[int, int], here: Scope) -> Synopsis:
    """Return a synopsis of two days."""
    return Synopsis(0, text, "", "", "", "", "", "", 86_400, 172_800, *seqs, here.tag)


@asynccontextmanager
async def _scopes(rig: Rig) -> AsyncIterator[Scopes]:
    async with opened(rig.environment["REDIS_URL"]) as client:
        store = Store(client, rig.keys, Scripts(client), _TTL_S)
        yield Scopes(store, QuestionVectors(None), max_bytes=1_000_000)
