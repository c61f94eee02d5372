"""`Scopes`: reads what is new in a scope, changes it under its version, and erases parts of it.

Redis remains the truth. What a process has read is valid only for the version it was read under.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import time
from typing import Any

import orjson

from memory.scopes.cache import ScopeCache
from memory.scopes.changes import NotWritten, Receipt, Revision, Write
from memory.scopes.delta import Cursor, Delta
from memory.scopes.entries import ScopeEntry, written
from memory.scopes.scope_memory import RECIPE, Found, R, ScopeMemory
from memory.scopes.stream import fingerprint_of
from memory.search.embeddings import QuestionVectors
from memory.store.commands import Arg
from memory.store.keys import Scope
from memory.store.store import Store

_PAGE = 1_000

_FIRST_CONTENT = 2
"""A script's first argument is a JSON object; contents follow it."""

_NOTHING_ERASED = Revision()


Decide = Callable[[ScopeMemory], Awaitable[Write | Revision | None]]
"""Returns what to change in a scope as it was read, None for nothing. It may be called again."""


class Scopes:
    """All scopes of one bot; the most recently used ones are cached."""

    def __init__(
        self,
        store: Store,
        questions: QuestionVectors,
        *,
        max_bytes: int,
    ) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._tell_erased = store.tell_erased
        self._ttl_s = store.ttl_s
        self._questions = questions
        self._cache = ScopeCache(max_bytes)

    def drop(self, scope: Scope) -> None:
        """Forget what was read of a scope."""
        self._cache.drop(scope)

    def cursor(self, scope: Scope) -> Cursor:
        """Return what of a scope need not be read again."""
        held = self._cache.get(scope)
        return held.cursor if held else Cursor()

    def keep(self, scope_memory: ScopeMemory) -> None:
        """Keep what was read of a scope, as the newest."""
        self._cache.keep(scope_memory)

    def join(self, scope: Scope, delta: Delta, max_entries: int) -> ScopeMemory:
        """Return a scope with what a turn has loaded; of its records something may be missing."""
        held = self._cache.get(scope) or ScopeMemory(scope)
        scope_memory = held.join(delta, max_entries)
        self._cache.keep(scope_memory)
        return scope_memory

    async def read(self, scope: Scope) -> ScopeMemory:
        """Read the fields and records of a scope, as they are stored now."""
        while True:
            before = self.cursor(scope)
            request = {"cursor": before.of_records, "max": _PAGE}
            answer = await self._scripts["read_scope"](self._keys.scope(scope).all, request)
            scope_memory = self.join(scope, Delta.of(answer), _PAGE)
            if scope_memory.is_whole:
                return scope_memory
            if scope_memory.cursor == before:  # old entries have gone: read all of it again
                self._cache.drop(scope)

    async def current(self, scope: Scope) -> ScopeMemory:
        """Return a scope as it was read at the beginning of this turn."""
        held = self._cache.get(scope)
        return held if held and held.is_whole else await self.read(scope)

    async def search(
        self, kind: type[R], scope_memory: ScopeMemory, text: str, k: int
    ) -> list[Found[R]]:
        """Search the records of a kind by words and, if they have vectors of our model, by meaning.

        Return at most `k` of them, best first, and then those that resemble the best one.
        """
        vector = None
        if scope_memory.fingerprint == self.vector_fingerprint:
            vector = await self._questions.vector(text)
        return scope_memory.search(kind, text, vector, k)

    @property
    def vector_fingerprint(self) -> str:
        """The embedding fingerprint of records; vectors of another one are never compared."""
        embedder = self._questions.embedder
        return fingerprint_of(embedder, RECIPE) if embedder else ""

    async def update(self, scope: Scope, decide: Decide) -> Receipt:
        """Read a scope, let `decide` say what to change in it, and change it.

        If anything else has changed meanwhile, all of it is done again. `decide` may also write to
        other scopes: its own `NotWritten` starts again, too. Return what a revision has erased.
        """
        while True:
            scope_memory = await self.read(scope)
            try:
                match await decide(scope_memory):
                    case Write() as write:
                        await self.write(scope_memory, write)
                    case Revision() as revision:
                        return await self.revise(scope_memory, revision)
            except NotWritten:
                continue
            return Receipt()

    async def erase(self, scope: Scope, revision: Revision = _NOTHING_ERASED) -> Receipt:
        """Carry out a revision that does not depend on what is stored; open turns begin again."""

        async def decide(_: ScopeMemory) -> Revision:
            return revision

        return await self.update(scope, decide)

    async def write(self, scope_memory: ScopeMemory, write: Write) -> int:
        """Append entries and set fields at once; return the first entry's id, 0 without entries.

        Raise `NotWritten` if something was erased in the scope since it was read, or if a field
        does not have its expected value.
        """
        scope, source = scope_memory.scope, write.learned_from
        epoch, erasure = scope_memory.version
        contents: list[Arg] = []
        wanted = {
            "epoch": epoch,
            "erasure": erasure,
            "ttl_s": self._ttl_s,
            "fields": {
                name: (scope_memory.fields.get(name, ""), value)
                for name, value in _values(write).items()
            },
            "entries": [_numbered(contents, entry) for entry in write.entries],
        }
        if source:
            wanted["learned_from"] = (source.scope.tag, source.epoch)
        await self._index(scope)
        answer = await self._called("write", scope, wanted, contents)
        if answer["outcome"] != "written":
            raise NotWritten(answer["outcome"])
        first: int = answer["first"]
        return first

    async def revise(self, scope_memory: ScopeMemory, revision: Revision) -> Receipt:
        """Erase and change parts of a scope for good, at once; an open turn begins again.

        Raise `NotWritten` if anything was learned or erased since the scope was read.
        """
        scope, (epoch, erasure) = scope_memory.scope, scope_memory.version
        contents: list[Arg] = []
        wanted = {
            "receipt": revision.receipt_id,
            "ttl_s": self._ttl_s,
            "epoch": epoch,
            "erasure": erasure,
            "newest": str(scope_memory.newest),
            "known": scope_memory.fields,
            "messages": list(revision.messages),
            "records": list(revision.records),
            "instead": [(record.id, *_numbered(contents, record)) for record in revision.instead],
            "fields": _values(revision),
        }
        answer = await self._called("revise", scope, wanted, contents)
        self._cache.drop(scope)
        if answer["outcome"] != "done":
            raise NotWritten(answer["outcome"])
        await self._tell_erased(scope)
        return Receipt.of(answer["counts"])

    async def cut(self, scope: Scope, conversation: Scope) -> int:
        """Let nothing more be written here that rests on a conversation before its last clear.

        Return the lowest epoch (`ScopeMemory.epoch`) of the conversation that still counts.
        """
        meta = self._keys.scope(conversation).meta
        generation, clears = await self._client.call("HMGET", meta, "generation", "epoch")
        epoch = int(generation or 0) + int(clears or 0)
        request = {"tag": conversation.tag, "epoch": epoch, "ttl_s": self._ttl_s}
        await self._scripts["cut"](self._keys.scope(scope).all, request)
        return epoch

    async def touch(self, scope: Scope) -> None:
        """Keep a scope for as long as if something had been learned in it now."""
        await self._index(scope)
        await self._scripts["touch"](self._keys.scope(scope).all, {"ttl_s": self._ttl_s})

    async def _index(self, scope: Scope) -> None:
        """Name the scope where erasures look for it, before anything is stored in it."""
        await self._client.call("ZADD", self._keys.index_of(scope), int(time()), scope.tag)

    async def _called(
        self, name: str, scope: Scope, wanted: Mapping[str, object], contents: Sequence[Arg]
    ) -> dict[str, Any]:
        keys = self._keys.scope(scope).all
        answer = await self._scripts[name](keys, (orjson.dumps(wanted), *contents))
        read: dict[str, Any] = orjson.loads(answer)
        return read


def _values(change: Write | Revision) -> dict[str, str]:
    """Return the new values of all fields that change, "" for those that go."""
    return {field.name: field.stored for field in change.fields} | dict.fromkeys(change.removed, "")


def _numbered(contents: list[Arg], entry: ScopeEntry) -> tuple[str, int]:
    """Add an entry's content to a script's arguments; return its kind and the argument's number."""
    kind, content = written(entry)
    contents.append(content)
    return kind, _FIRST_CONTENT + len(contents) - 1
