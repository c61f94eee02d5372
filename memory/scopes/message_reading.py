"""Reads all messages of a conversation, and their vectors, under one version; or the newest."""

import asyncio
from contextlib import AsyncExitStack

from memory.message import Message
from memory.scopes.log import StreamDelta, message_of, seq_of, version_of
from memory.scopes.message_stream import MessageStream
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.commands import Reply
from memory.store.keys import Scope
from memory.store.store import Store
from memory.store.tasks import shielded

_PAGE = 200
_LONG_BYTES = 2**21
"""A conversation that takes more memory is read alone: others as long wait."""


async def read_conversation(store: Store, scopes: Scopes, conversation: Scope) -> ScopeMemory:
    """Read a conversation with all its messages under one version, and keep it in the cache."""
    while True:
        version, messages = await read_messages(store, scopes, conversation)
        scope_memory = await scopes.read(conversation)
        if scope_memory.version == version:
            scope_memory.messages = messages
            scopes.keep(scope_memory)
            return scope_memory


async def read_newest(store: Store, conversation: Scope) -> list[Message]:
    """Return the newest 200 messages of a conversation, newest first."""
    log = store.keys.scope(conversation).log
    entries = await store.client.call("XREVRANGE", log, "+", "-", "COUNT", _PAGE)
    return [message_of(seq_of(entry), fields) for entry, fields in entries]


async def read_messages(
    store: Store, scopes: Scopes, conversation: Scope
) -> tuple[tuple[str, str], MessageStream]:
    """Return the version (epoch, erasure) and all messages and vectors that it has.

    If they take too much memory, only the newest are kept. A short conversation takes one round
    trip. A longer one is read in pages, because Redis counts what it is about to send as used
    memory, and because other turns go on between two pages. Long conversations are read and indexed
    one after the other, because indexing one with many made-up words takes 100 MB.
    """
    keys = store.keys.scope(conversation)
    names = ("epoch", "erasure", "vector_fingerprint", "session", "generation")
    versions: set[tuple[Reply, ...]] = set()
    is_whole = is_long = False
    async with AsyncExitStack() as turn:
        while not is_whole:
            if not versions:
                messages = MessageStream()
                messages.max_bytes = scopes.conversation_bytes
            if not is_long and messages.nbytes > _LONG_BYTES:
                is_long = True
                await turn.enter_async_context(scopes.reading_long)
            newest = {keys.log: messages.newest, keys.vectors: messages.vectors.newest}
            pages = [
                ("XRANGE", key, b"(%d-0" % seq, "+", "COUNT", _PAGE) for key, seq in newest.items()
            ]
            version = ("HMGET", keys.meta, *names)
            before, log, vectors, after = await store.client.pipeline([version, *pages, version])
            versions |= {tuple(before), tuple(after)}
            page = StreamDelta(
                entries=[(seq_of(entry), fields) for entry, fields in log],
                length=messages.count + len(log),
                fingerprint=(after[2] or b"").decode(),
                vectors=[(seq_of(entry), fields[b"v"]) for entry, fields in vectors],
                vectors_length=messages.vectors.count + len(vectors),
            )
            widths = {len(row) for _, row in page.vectors}
            if len(versions) > 1 or len(widths) > 1 or not messages.vectors.fits(page.vectors):
                versions.clear()  # an erasure or another model came in between: read all again
                continue
            messages.add(page)
            messages.shorten()
            is_whole = max(len(log), len(vectors)) < _PAGE
        if is_long:
            await shielded(asyncio.to_thread(messages.indexed, scopes.zone))
    messages.session = int(after[3] or 0)
    return version_of(after), messages
