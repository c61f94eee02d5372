"""The notebooks of all scopes: read as far as they are new, written under fences, erased in parts.

Redis remains the truth; what a process holds is valid for the version that it was read under.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import time

from memory.embeddings import QuestionVectors
from memory.keys import Conversation
from memory.lru import ByteBoundCache
from memory.notebook.codec import written
from memory.notebook.notebook import RECIPE, Found, Notebook, R
from memory.notebook.records import Entry, Fact
from memory.protocol.erasure import Receipt
from memory.protocol.store import Store
from memory.protocol.turns import KnownNotes, Lease, Notes, ScopeNotes
from memory.redis_client import Arg

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
    learned_from: Notebook | None = None


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


class Notebooks:
    """All notebooks of one bot, the most recently used ones warm."""

    def __init__(
        self,
        store: Store,
        questions: QuestionVectors,
        *,
        most_bytes: int,
    ) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._tell_erased = store.tell_erased
        self._ttl_s = store.ttl_s
        self._questions = questions
        self._warm: ByteBoundCache[Conversation, Notebook] = ByteBoundCache(most_bytes)

    def drop(self, scope: Conversation) -> None:
        """Forget what was read of a scope."""
        self._warm.drop(scope)

    def known(self, scope: Conversation) -> KnownNotes:
        """Return what of a scope need not be read again."""
        held = self._warm.get(scope)
        return KnownNotes(held.newest, held.vectors.newest, held.version) if held else KnownNotes()

    async def of_person(self, scope: Conversation, came: ScopeNotes | None) -> Notebook:
        """Return a person's notebook as it came with a turn; reads it where that was not all."""
        notebook = self._merged(scope, came.version, came.notes) if came else None
        return notebook if notebook and notebook.is_whole else await self.read(scope)

    async def of_turn(self, lease: Lease, notes: Notes) -> Notebook:
        """Return a conversation's notebook as a turn loaded it; reads on where that was not all."""
        notebook = self._merged(lease.conversation, lease.version, notes)
        return notebook if notebook.is_whole else await self.read(lease.conversation)

    async def read(self, scope: Conversation) -> Notebook:
        """Return a notebook as it stands in the store."""
        while True:
            held = self._warm.get(scope) or Notebook(scope, ("", ""))
            arguments = (held.newest, held.vectors.newest, _PAGE, *held.version)
            answer = await self._scripts["read_notes"](
                self._keys.conversation(scope).all, arguments
            )
            epoch, erasure, *notes = answer
            before = held.newest, held.vectors.newest, held.version
            notebook = self._merged(scope, (epoch.decode(), erasure.decode()), Notes.of(notes))
            after = notebook.newest, notebook.vectors.newest, notebook.version
            if notebook.is_whole:
                return notebook
            if after == before:  # entries were trimmed behind our back: read all anew
                self._warm.drop(scope)

    async def current(self, scope: Conversation) -> Notebook:
        """Return a notebook as it was read at the beginning of this turn."""
        return self._warm.get(scope) or await self.read(scope)

    async def search(self, kind: type[R], notebook: Notebook, text: str, k: int) -> list[Found[R]]:
        """Search a notebook by words and, where it has vectors of our model, by meaning."""
        vector = None
        if notebook.vector_stamp == self.vector_stamp:
            vector = await self._questions.of(text)
        return notebook.search(kind, text, vector, k)

    @property
    def vector_stamp(self) -> str:
        """Name model, dimensions and text recipe; vectors of another stamp are never compared."""
        embedder = self._questions.embedder
        return f"{embedder.stamp} | {RECIPE}" if embedder else ""

    async def write(self, notebook: Notebook, writing: Writing) -> int:
        """Append entries and set fields at once; return the first entry's id, 0 without entries.

        Raise `NotWritten` when the scope is not as `notebook` has it any more.
        """
        scope, source = notebook.scope, writing.learned_from
        learned_from = (source.scope.tag, source.epoch) if source else ("", "")
        arguments: list[Arg] = [*notebook.version, self._ttl_s, *learned_from, len(writing.fields)]
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
        scope: Conversation,
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

    async def revise(self, notebook: Notebook, revision: Revision, receipt_id: str = "") -> Receipt:
        """Erase and change parts of a scope for good, at once; whoever has a turn begins again.

        With a `receipt_id` a repeat within the hour changes nothing and answers the same. Raise
        `NotWritten` when anything was learned or erased since `notebook` was read.
        """
        instead = [(fact.id, *written(fact)) for fact in revision.instead]
        arguments: list[Arg] = [receipt_id, self._ttl_s, *notebook.version, notebook.newest]
        for values in (
            revision.messages,
            revision.entries,
            [part for fact in instead for part in fact],
            [part for name in revision.fields for part in (name, revision.fields[name])],
        ):
            arguments += (len(values), *values)
        keys = self._keys.conversation(notebook.scope).all
        outcome, *counts = await self._scripts["revise"](keys, arguments)
        self._warm.drop(notebook.scope)
        if outcome != b"done":
            raise NotWritten(outcome.decode())
        await self._tell_erased(notebook.scope)
        return Receipt.of(counts[0])

    async def cut(self, scope: Conversation, conversation: Conversation) -> int:
        """Let nothing more be written here that rests on a conversation before its last clear.

        Return the lowest epoch (`Notebook.epoch`) of the conversation that still counts.
        """
        meta = self._keys.conversation(conversation).meta
        born, clears = await self._client.call("HMGET", meta, "born", "epoch")
        epoch = int(born or 0) + int(clears or 0)
        arguments = (conversation.tag, epoch, self._ttl_s)
        await self._scripts["cut"](self._keys.conversation(scope).all, arguments)
        return epoch

    async def touch(self, scope: Conversation) -> None:
        """Keep a scope for as long as if something had been learned in it now."""
        await self._index(scope)
        await self._scripts["touch"](self._keys.conversation(scope).all, (self._ttl_s,))

    def _merged(self, scope: Conversation, version: tuple[str, str], notes: Notes) -> Notebook:
        held = self._warm.get(scope)
        if (
            held is None
            or held.version != version
            or held.born != notes.born
            or held.vector_stamp != notes.vector_stamp
            or not held.vectors.fits(notes.vectors)
        ):
            held = Notebook(scope, version)
            held.vector_stamp, held.born = notes.vector_stamp, notes.born
        held.add(notes)
        self._warm.keep(scope, held)
        return held

    async def _index(self, scope: Conversation) -> None:
        """Name the scope where erasures look for it, before anything is stored in it."""
        await self._client.call("ZADD", self._keys.index_of(scope), int(time()), scope.tag)
