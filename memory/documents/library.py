"""`Library`: the documents of a scope, kept as passages in its notebook.

A document is known by its name within the scope: put there again, it replaces what it was. Fetching
files and reading their formats is done elsewhere.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from memory.documents.chunking import Section
from memory.queue.turns import LEARN_LATE_S
from memory.scopes.changes import Revision, Write
from memory.scopes.entries import Chunk
from memory.scopes.fields import Document, name_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope
from memory.store.store import Store

_KEY_CHARS = 16


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from; `name` tells it from others of its scope.

    `nbytes` is the size of the file. `sender_id` is who gave it, 0 for the operator.
    """

    name: str
    link: str = ""
    nbytes: int = 0
    sender_id: int = 0


@dataclass(frozen=True, slots=True)
class Put:
    """What putting a document did; `replaced` passages of an older content are gone."""

    document: Document
    is_new: bool
    replaced: int = 0


class Library:
    """Puts documents into notebooks, lists them, removes them."""

    def __init__(self, store: Store, scopes: Scopes) -> None:
        self._client = store.client
        self._learning = store.keys.learning
        self._scopes = scopes

    async def put(
        self, scope_memory: ScopeMemory, origin: Origin, passages: Sequence[Section]
    ) -> Put:
        """Store a document as it is now; the same once more changes nothing.

        Raise `NotWritten` when something was erased in the scope since `notebook` was read. Where
        passages are replaced, the scope's version moves on: an open turn there has to begin again.
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
            )
            await self._note(scope_memory.scope)
            await self._scopes.write(scope_memory, Write(_chunks(document, passages), [document]))
            scope_memory = await self._scopes.read(scope_memory.scope)
        # A process that died between writing and erasing leaves the old passages to the next one.
        old = [
            chunk.id
            for chunk in scope_memory.chunks
            if chunk.document == key and chunk.added_at != document.added_at
        ]
        if old:
            await self._scopes.erase(scope_memory.scope, Revision(records=old))
        return Put(document, is_new, len(old))

    async def remove(self, scope: Scope, key: str) -> Document | None:
        """Erase a document for good; return what it was, nothing if there is none of this key."""
        scope_memory = await self._scopes.read(scope)
        document = documents(scope_memory).get(key)
        records = [chunk.id for chunk in scope_memory.chunks if chunk.document == key]
        if document is not None or records:
            await self._scopes.erase(scope, _erasing(key, records))
        return document

    async def listed(self, scope: Scope) -> list[Document]:
        """Return the documents of a scope, newest first."""
        found = documents(await self._scopes.read(scope)).values()
        return sorted(found, key=lambda document: -document.added_at)

    async def _note(self, scope: Scope) -> None:
        """Note first that there is something to embed: a note too many only looks once in vain."""
        await self._client.call("ZADD", self._learning, time.time() + LEARN_LATE_S, scope.tag)


def _erasing(key: str, records: Sequence[int]) -> Revision:
    return Revision(records=records, removed=[name_of(Document, key)])


def documents(scope_memory: ScopeMemory) -> dict[str, Document]:
    """Return the documents of a notebook by their keys."""
    return {document.key: document for document in scope_memory.all(Document)}


def key_of(name: str) -> str:
    """Return the short key of a document's name, as it stands in fields and under buttons."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_KEY_CHARS]


def _digest(origin: Origin, passages: Sequence[Section]) -> str:
    """Return a digest of all that is stored of the content and shown of its source."""
    told = [origin.name, origin.link, *((each.place, each.text) for each in passages)]
    return hashlib.sha256(orjson.dumps(told)).hexdigest()[:_KEY_CHARS]


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
        )
        for number, passage in enumerate(passages)
    ]
