"""The notebooks of all scopes: read as far as they are new, written under fences, erased in parts.

Redis remains the truth; what a process holds is valid for the version that it was read under.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import time

from memory.erasure.confirmations import Receipt
from memory.queue.turns import Lease, Notes, ScopeCursor, ScopeNotes
from memory.scopes.codec import written
from memory.scopes.lru import ByteBoundCache
from memory.scopes.records import Entry, Fact
from memory.scopes.scope_memory import RECIPE, Found, R, ScopeMemory
from memory.search.embeddings import QuestionVectors
from memory.store.client import Arg
from memory.store.keys import Scope
from memory.store.store import Store

_PAGE = 1_000


class NotWritten(Exception):  # noqa: N818 - says when
    """Raised when a write was refused: something was erased, or a field had changed meanwhile."""


@dataclass(frozen=True, slots=True)
class Writing:
    """What one step of learning writes at once.

    `fields` maps a field to what it must hold and what it shall hold ("" for nothing).
    `learned_from` is the notebook of the conversation that it rests on, as read before, when this
    one is another scope's.
    """

    entries: Sequence[Entry] = ()
    fields: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    learned_from: ScopeMemory | None = None


@dataclass(frozen=True, slots=True)
class Erased:
    """How much an erasure of parts took."""

    messages: int
    vectors: int
    records: int


@dataclass(frozen=True, slots=True)
class Revision:
    """What an erasure takes of a scope, and what it leaves in its place.

    `messages` are sequences, `entries` ids of records and of what amends them, `instead` facts as
    they are from now on, `fields` what they shall hold ("" for nothing).
    """

    messages: Sequence[int] = ()
    entries: Sequence[int] = ()
    instead: Sequence[Fact] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


class Scopes:
    """All notebooks of one bot, the most recently used ones warm."""

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
        self._warm: ByteBoundCache[Scope, ScopeMemory] = ByteBoundCache(max_bytes)

    def drop(self, scope: Scope) -> None:
        """Forget what was read of a scope."""
        self._warm.drop(scope)

    def known(self, scope: Scope) -> ScopeCursor:
        """Return what of a scope need not be read again."""
        held = self._warm.get(scope)
        return (
            ScopeCursor(held.newest, held.vectors.newest, held.version) if held else ScopeCursor()
        )

    async def of_person(self, scope: Scope, came: ScopeNotes | None) -> ScopeMemory:
        """Return a person's notebook as it came with a turn; reads it where that was not all."""
        scope_memory = self._merged(scope, came.version, came.notes) if came else None
        return scope_memory if scope_memory and scope_memory.is_whole else await self.read(scope)

    async def of_turn(self, lease: Lease, notes: Notes) -> ScopeMemory:
        """Return a conversation's notebook as a turn loaded it; reads on where that was not all."""
        scope_memory = self._merged(lease.conversation, lease.version, notes)
        return scope_memory if scope_memory.is_whole else await self.read(lease.conversation)

    async def read(self, scope: Scope) -> ScopeMemory:
        """Return a notebook as it stands in the store."""
        while True:
            held = self._warm.get(scope) or ScopeMemory(scope, ("", ""))
            arguments = (held.newest, held.vectors.newest, _PAGE, *held.version)
            answer = await self._scripts["read_notes"](
                self._keys.conversation(scope).all, arguments
            )
            epoch, erasure, *notes = answer
            before = held.newest, held.vectors.newest, held.version
            scope_memory = self._merged(scope, (epoch.decode(), erasure.decode()), Notes.of(notes))
            after = scope_memory.newest, scope_memory.vectors.newest, scope_memory.version
            if scope_memory.is_whole:
                return scope_memory
            if after == before:  # entries were trimmed behind our back: read all anew
                self._warm.drop(scope)

    async def current(self, scope: Scope) -> ScopeMemory:
        """Return a notebook as it was read at the beginning of this turn."""
        return self._warm.get(scope) or await self.read(scope)

    async def search(
        self, kind: type[R], scope_memory: ScopeMemory, text: str, k: int
    ) -> list[Found[R]]:
        """Search a notebook by words and, where it has vectors of our model, by meaning."""
        vector = None
        if scope_memory.vector_fingerprint == self.vector_fingerprint:
            vector = await self._questions.of(text)
        return scope_memory.search(kind, text, vector, k)

    @property
    def vector_fingerprint(self) -> str:
        """Name model, dimensions and text recipe; vectors of another stamp are never compared."""
        embedder = self._questions.embedder
        return f"{embedder.fingerprint} | {RECIPE}" if embedder else ""

    async def write(self, scope_memory: ScopeMemory, writing: Writing) -> int:
        """Append entries and set fields at once; return the first entry's id, 0 without entries.

        Raise `NotWritten` when the scope is not as `notebook` has it any more.
        """
        scope, source = scope_memory.scope, writing.learned_from
        learned_from = (source.scope.tag, source.epoch) if source else ("", "")
        arguments: list[Arg] = [
            *scope_memory.version,
            self._ttl_s,
            *learned_from,
            len(writing.fields),
        ]
        for name, (expected, wanted) in writing.fields.items():
            arguments += (name, expected, wanted)
        for entry in writing.entries:
            arguments += written(entry)
        await self._index(scope)
        answer = await self._scripts["learn"](self._keys.conversation(scope).all, arguments)
        if isinstance(answer, bytes):
            raise NotWritten(answer.decode())
        return int(answer)

    async def erase(
        self,
        scope: Scope,
        *,
        records: Sequence[int] = (),
        messages: Sequence[int] = (),
        fields: Sequence[str] = (),
    ) -> Erased:
        """Erase records, messages (with their vectors) and fields of a scope for good."""
        arguments: list[Arg] = [self._ttl_s, len(fields), *fields, len(messages), *messages]
        arguments += records
        keys = self._keys.conversation(scope).all
        counts = await self._scripts["erase_parts"](keys, arguments)
        self._warm.drop(scope)
        await self._tell_erased(scope)
        return Erased(*map(int, counts))

    async def revise(
        self, scope_memory: ScopeMemory, revision: Revision, receipt_id: str = ""
    ) -> Receipt:
        """Erase and change parts of a scope for good, at once; whoever has a turn begins again.

        With a `receipt_id` a repeat within the hour changes nothing and answers the same. Raise
        `NotWritten` when anything was learned or erased since `notebook` was read.
        """
        instead = [(fact.id, *written(fact)) for fact in revision.instead]
        arguments: list[Arg] = [receipt_id, self._ttl_s, *scope_memory.version, scope_memory.newest]
        for values in (
            revision.messages,
            revision.entries,
            [part for fact in instead for part in fact],
            [part for name in revision.fields for part in (name, revision.fields[name])],
        ):
            arguments += (len(values), *values)
        keys = self._keys.conversation(scope_memory.scope).all
        outcome, *counts = await self._scripts["revise"](keys, arguments)
        self._warm.drop(scope_memory.scope)
        if outcome != b"done":
            raise NotWritten(outcome.decode())
        await self._tell_erased(scope_memory.scope)
        return Receipt.of(counts[0])

    async def cut(self, scope: Scope, conversation: Scope) -> int:
        """Let nothing more be written here that rests on a conversation before its last clear.

        Return the lowest epoch (`Notebook.epoch`) of the conversation that still counts.
        """
        meta = self._keys.conversation(conversation).meta
        generation, clears = await self._client.call("HMGET", meta, "generation", "epoch")
        epoch = int(generation or 0) + int(clears or 0)
        arguments = (conversation.tag, epoch, self._ttl_s)
        await self._scripts["cut"](self._keys.conversation(scope).all, arguments)
        return epoch

    async def touch(self, scope: Scope) -> None:
        """Keep a scope for as long as if something had been learned in it now."""
        await self._index(scope)
        await self._scripts["touch"](self._keys.conversation(scope).all, (self._ttl_s,))

    def _merged(self, scope: Scope, version: tuple[str, str], notes: Notes) -> ScopeMemory:
        held = self._warm.get(scope)
        if (
            held is None
            or held.version != version
            or held.generation != notes.generation
            or held.vector_fingerprint != notes.vector_fingerprint
            or not held.vectors.fits(notes.vectors)
        ):
            held = ScopeMemory(scope, version)
            held.vector_fingerprint, held.generation = notes.vector_fingerprint, notes.generation
        held.add(notes)
        self._warm.keep(scope, held)
        return held

    async def _index(self, scope: Scope) -> None:
        """Name the scope where erasures look for it, before anything is stored in it."""
        await self._client.call("ZADD", self._keys.index_of(scope), int(time()), scope.tag)
