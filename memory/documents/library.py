"""`Library`: the documents of a scope, stored as passages.

The name identifies a document within its scope: a new put under the same name replaces it. Files
are fetched and read by features of the bot.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from memory.documents.chunking import Section
from memory.queue.turn_store import LEARN_LATE_S
from memory.scopes.changes import Revision, Write
from memory.scopes.entries import Chunk
from memory.scopes.fields import Document, name_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope
from memory.store.store import Store

MAX_PASSAGES = 4_000
"""Of all documents of a scope: some 8 MB of Redis."""
_KEY_CHARS = 16


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from."""

    name: str  # identifies it in its scope
    link: str = ""
    nbytes: int = 0  # size of the file
    sender_id: int = 0  # the person who sent it, 0 for the operator
    imported_from: str = ""  # the assistant whose talks these are


@dataclass(frozen=True, slots=True)
class PutResult:
    """What a put did. `replaced`: number of erased passages of older content."""

    document: Document
    is_new: bool
    replaced: int = 0


class Library:
    """Puts, lists and removes the documents of scopes."""

    def __init__(self, store: Store, scopes: Scopes) -> None:
        self._store = store
        self.scopes = scopes

    async def put(
        self, scope_memory: ScopeMemory, origin: Origin, passages: Sequence[Section]
    ) -> PutResult:
        """Store a document; the same content again changes nothing.

        Raise `NotWritten` if something was erased in the scope since `scope_memory` was read. If
        passages are replaced, the version of the scope grows, so an open turn starts again.
        """
        key = key_of(origin.name)
        digest = _digest(origin, passages)
        known = documents(scope_memory).get(key)
        document = known if known and known.digest == digest else None
        is_new = document is None
        if document is None:
            document = Document(
                of_name=key,
                title=origin.name,
                digest=digest,
                passages=len(passages),
                added_at=time.time(),
                link=origin.link,
                nbytes=origin.nbytes,
                sender_id=origin.sender_id,
                imported_from=origin.imported_from,
            )
            # Schedule embedding before writing; a schedule without new text does no harm.
            due, tag = time.time() + LEARN_LATE_S, scope_memory.scope.tag
            await self._store.client.call("ZADD", self._store.keys.learning, due, tag)
            await self.scopes.write(scope_memory, Write(_chunks(document, passages), [document]))
            scope_memory = await self.scopes.read(scope_memory.scope)
        # After a crash between writing and erasing, the next put erases the old passages.
        old = [
            chunk.id
            for chunk in scope_memory.chunks
            if chunk.document == key and chunk.added_at != document.added_at
        ]
        if old:
            await self.scopes.erase(scope_memory.scope, Revision(records=old))
        return PutResult(document, is_new, len(old))

    async def remove(self, scope: Scope, key: str) -> Document | None:
        """Erase a document and return it; None if the scope has no document of this key."""
        scope_memory = await self.scopes.read(scope)
        document = documents(scope_memory).get(key)
        records = [chunk.id for chunk in scope_memory.chunks if chunk.document == key]
        if document is not None or records:
            await self.scopes.erase(
                scope, Revision(records=records, removed=[name_of(Document, key)])
            )
        return document

    async def listed(self, scope: Scope) -> list[Document]:
        """Return the documents of a scope, newest first."""
        found = documents(await self.scopes.read(scope)).values()
        return sorted(found, key=lambda document: -document.added_at)


def documents(scope_memory: ScopeMemory) -> dict[str, Document]:
    """Return the documents of a scope by their keys."""
    return {document.key: document for document in scope_memory.all(Document)}


def room_of(scope_memory: ScopeMemory, but: str = "") -> int:
    """Return how many passages a scope may still get, without those of the document `but`."""
    others = (each for each in documents(scope_memory).values() if each.title != but)
    return MAX_PASSAGES - sum(each.passages for each in others)


def key_of(name: str) -> str:
    """Return the short key of a document's name, for field names and buttons."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_KEY_CHARS]


def _digest(origin: Origin, passages: Sequence[Section]) -> str:
    """Return a digest of the stored content and the shown source."""
    content = [origin.name, origin.link, *((each.place, each.text) for each in passages)]
    return hashlib.sha256(orjson.dumps(content)).hexdigest()[:_KEY_CHARS]


def _chunks(document: Document, passages: Sequence[Section]) -> list[Chunk]:
    return [
        Chunk(
            id=0,
            document=document.key,
            number=number,
            text=passage.text,
            title=document.title,
            link=document.link,
            place=passage.place,
            added_at=document.added_at,
            said_at=passage.said_at,
        )
        for number, passage in enumerate(passages)
    ]
