"""`Scopes`: reads new entries of a scope, writes to it under its version, and erases parts of it.

Redis has the truth. What a process has read is valid only for the version that it was read under.
"""

import asyncio
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import astuple, dataclass, field
from datetime import UTC, tzinfo
from functools import partial
from hashlib import sha1
from inspect import isawaitable
from time import time
from zoneinfo import ZoneInfo

import orjson

from memory.scopes.changes import NotWritten, Receipt, Revision, Write, new_values
from memory.scopes.entries import Hidden, written
from memory.scopes.fields import Field
from memory.scopes.log import Cursor, Delta, StreamDelta, page_after, stored_fields, version_of
from memory.scopes.scope_memory import RECIPE, Found, R, ScopeMemory
from memory.scopes.stream import MessageStream
from memory.search.embeddings import QuestionVectors, load_index
from memory.store.commands import Arg, Command, Reply, ScriptCall
from memory.store.errors import LeaseLost, StoreFull
from memory.store.keys import Scope
from memory.store.store import Store
from memory.store.tasks import in_turns, shielded

_PAGE = 1_000
_LONG_BYTES = 2**21  # a conversation that takes more memory is read alone: others as long wait
_MAX_UNINDEXED_BYTES = 2**21  # with more, it is indexed before its next page is read
_MAX_SENT = 64  # of a longer field only a digest is sent with a write, to see if it has changed
_events: partial[defaultdict[str, asyncio.Event]] = partial(defaultdict, asyncio.Event)
_FIRST_CONTENT = 2  # a script's first argument is a JSON object; contents follow it

ReadVersion = tuple[Scope, tuple[str, str]]  # a scope, and its version when it was read
Change = Write | Revision | None
Decide = Callable[[ScopeMemory], Change | Awaitable[Change]]
"""Returns what to change in a scope as it was read, None for nothing; it may be called again."""


@dataclass(eq=False)
class Scopes:
    """All scopes of one bot; the most recently used ones are cached. `zone` is the operator's.

    The cache takes at most `max_bytes`. Of a longer conversation it has only the newest messages,
    at most `conversation_bytes`.
    """

    store: Store
    question_vectors: QuestionVectors
    max_bytes: int
    conversation_bytes: int = sys.maxsize
    zone: tzinfo = UTC
    reading_long: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    # The cached scopes, the least recently used first. Reading this does not count as use.
    held: OrderedDict[Scope, ScopeMemory] = field(default_factory=OrderedDict, init=False)
    # One event for each kind of note (`Store.note`), set when such a note arrives.
    noted: defaultdict[str, asyncio.Event] = field(default_factory=_events, init=False)
    _erased_until: bytes = field(default=b"-", init=False)
    _server: str = field(default="", init=False)  # `run_id` of the server that was seen last
    _sizes: dict[Scope, int] = field(default_factory=dict, init=False)
    _bytes: int = field(default=0, init=False)

    def drop(self, scope: Scope) -> None:
        """Remove a scope from the cache, if it is there."""
        self.held.pop(scope, None)
        self._bytes -= self._sizes.pop(scope, 0)

    async def drop_erased(self) -> None:
        """Drop the cached content of scopes in which any process has erased something.

        Reads what was noted since the last call, and sets the events in `noted`. After an erasure,
        also of another process, the embedded server rewrites its file. Raise `StoreError`.
        """
        call, stream = self.store.client.call, self.store.keys.erased
        while noted := await call("XRANGE", stream, self._erased_until, "+", "COUNT", _PAGE):
            for _, fields in noted:
                scope = Scope(fields[b"c"].decode())
                if ":" not in scope.tag:
                    self.noted[scope.tag].set()
                else:
                    self.drop_outdated(scope, *orjson.loads(fields.get(b"only", b"[0]")))
                    self.question_vectors.forget()
                    self.store.erased.set()
            self._erased_until = b"(" + noted[-1][0]

    def drop_outdated(self, scope: Scope, erasure: int, *erased: int) -> None:
        """Drop a scope after an erasure; all but the `erased` messages stay if they can.

        `erasure` is the version after it, 0 if it may have touched other messages.
        """
        held = self.held.get(scope)
        known = int(held.version[1] or 0) if held else 0
        if 0 < erasure <= known:
            return  # it was read after the erasure
        self.drop(scope)
        if held and known + 1 == erasure and held.messages.take_out(erased):
            version = held.version[0], str(erasure)
            self.keep(ScopeMemory(scope, version, held.generation, held.messages))

    async def drop_lost(self) -> None:
        """Drop the whole cache if the server was restarted or replaced; raise `StoreError`."""
        server = (await self.store.client.info("server")).get("run_id", "")
        if self._server not in ("", server):
            for scope, lost in list(self.held.items()):
                lost.is_lost = True  # a running turn still has it, and must not put it back
                self.drop(scope)
        self._server = server

    def cursor(self, scope: Scope) -> Cursor:
        """Return the cursor of the cached scope, an empty one if it is not in the cache."""
        held = self.held.get(scope)
        return held.cursor if held else Cursor()

    def keep(self, scope_memory: ScopeMemory) -> None:
        """Put a scope into the cache as the most recently used; the newest one always stays."""
        if scope_memory.is_lost:
            return
        scope_memory.messages.max_bytes = self.conversation_bytes
        scope = scope_memory.scope
        self.drop(scope)
        self.held[scope], self._sizes[scope] = scope_memory, scope_memory.nbytes
        self._bytes += self._sizes[scope]
        while self._bytes > self.max_bytes and len(self.held) > 1:
            self.drop(next(iter(self.held)))

    def join(self, scope: Scope, delta: Delta, max_entries: int) -> ScopeMemory:
        """Return a scope with what a turn has loaded; some records may still be missing."""
        held = self.held.get(scope) or ScopeMemory(scope)
        scope_memory = held.join(delta, max_entries)
        self.keep(scope_memory)
        return scope_memory

    def reading(self, scope: Scope) -> ScriptCall:
        """Return the call that reads what is new in a scope, for a pipeline."""
        request = {"cursor": self.cursor(scope).of_records, "max": _PAGE}
        return self.store.call("read_scope", scope, request)

    async def read(self, scope: Scope) -> ScopeMemory:
        """Read the fields and records of a scope, as they are stored now."""
        while True:
            before = self.cursor(scope)
            [answer] = await self.store.client.pipeline([self.reading(scope)])
            scope_memory = self.join(scope, Delta.of(answer), _PAGE)
            if scope_memory.is_whole:
                return scope_memory
            if scope_memory.cursor == before:  # old entries were erased: read all again
                self.drop(scope)

    async def current(self, scope: Scope) -> ScopeMemory:
        """Return the cached scope, as the turn has read it; read it if it is not complete."""
        held = self.held.get(scope)
        return held if held and held.is_whole else await self.read(scope)

    def zone_of(self, scope: Scope) -> tzinfo:
        """Return the time zone of a private chat's person if it is known, else the operator's."""
        held = self.held.get(scope.facts_scope)
        return ZoneInfo(held.zone) if held and held.zone else self.zone

    async def read_conversation(self, conversation: Scope) -> ScopeMemory:
        """Read a conversation with all its messages under one version; keep it in the cache."""
        while True:
            version, messages = await self.read_messages(conversation)
            scope_memory = await self.read(conversation)
            if scope_memory.version == version:
                scope_memory.messages = messages
                self.keep(scope_memory)
                return scope_memory

    async def read_messages(self, conversation: Scope) -> tuple[tuple[str, str], MessageStream]:
        """Return the version (epoch, erasure) and all messages and vectors that it has.

        If they take too much memory, only the newest are kept. What the cache has is not read
        again. The README says how a long conversation is read.
        """
        before: Reply = None
        is_whole = is_long = False
        held = self.held.get(conversation)
        held = held if held and held.messages.is_whole else None
        async with AsyncExitStack() as turn:
            while not is_whole:
                if before is None:
                    messages = held.messages if held else MessageStream()
                    messages.max_bytes = self.conversation_bytes
                if not (is_long or held) and messages.nbytes > _LONG_BYTES:
                    is_long = True
                    await turn.enter_async_context(self.reading_long)
                newest = messages.newest, messages.newest_vector
                meta, page, is_whole = await page_after(self.store, conversation, newest)
                is_same = meta and meta == (before or meta)
                if is_same and held:
                    known = *held.version, held.generation
                    is_same = known == (*version_of(meta), int(meta[4] or 0))
                    # Meanwhile a turn may have left a gap, or the server may have been replaced.
                    is_same = is_same and messages.is_whole and not held.is_lost
                widths = {len(row) for _, row in page.vectors}
                if not is_same or len(widths) > 1 or not messages.joins(page):
                    before, held, is_whole = None, None, False  # an erasure or another model came
                    continue
                before = meta
                messages.add(page)
                messages.length, messages.vectors_length = messages.count, messages.vectors_count
                if held:
                    continue  # others may be searching it, so the next search shortens and indexes
                messages.shorten()
                # If messages were dropped already, most of an index would be dropped, too.
                has_all = messages.count == len(messages.messages)
                is_much = has_all and messages.unindexed_bytes > _MAX_UNINDEXED_BYTES
                if is_long and (is_whole or is_much):
                    await shielded(asyncio.to_thread(messages.indexed, self.zone_of(conversation)))
        messages.session = int(meta[3] or 0)
        return version_of(meta), messages

    async def index(self, scope_memory: ScopeMemory) -> None:
        """Index new records; there may be thousands, so other turns go on meanwhile."""
        await load_index()
        await in_turns(scope_memory.indexing(self.zone_of(scope_memory.scope)), 1)

    async def search(
        self, kind: type[R], scope_memory: ScopeMemory, text: str, k: int
    ) -> list[Found[R]]:
        """Search the records of a kind by words and, if they have vectors of our model, by meaning.

        Return at most `k` of them, best first, and after them those that resemble the best one.
        """
        await self.index(scope_memory)
        vector = await self.question_vectors.vector(text, scope_memory.fingerprint, RECIPE)
        return scope_memory.search(kind, text, vector, k, self.zone_of(scope_memory.scope))

    async def update(self, scope: Scope, decide: Decide) -> Receipt:
        """Read a scope, let `decide` say what to change in it, and change it.

        If the scope has changed meanwhile, start again. `decide` may also write to other scopes; if
        it raises `NotWritten`, start again, too. After any revision an open turn begins again.
        Return the counts of what it has erased.
        """
        while True:
            scope_memory = await self.read(scope)
            try:
                change = decide(scope_memory)
                match await change if isawaitable(change) else change:
                    case Write() as write:
                        await self.write(scope_memory, write)
                    case Revision() as revision:
                        return await self.revise(scope_memory, revision)
            except NotWritten:
                continue
            return Receipt()

    async def set_field(self, scope: Scope, field: Field, since: ReadVersion | None = None) -> None:
        """Set one field; raise `StoreError`, or `LeaseLost` if anything was erased `since`."""

        async def decide(here: ScopeMemory) -> Write | None:
            meta = await self.store.read_meta(since[0], "epoch", "erasure") if since else ()
            if since and version_of(meta) != since[1]:
                raise LeaseLost(since[0].tag)
            is_set = here.fields.get(field.name, "") == field.stored
            return None if is_set else Write(fields=[field])

        await self.update(scope, decide)

    async def write(self, scope_memory: ScopeMemory, write: Write) -> None:
        """Append entries and set fields at once, as `write_all` does."""
        await self.write_all({scope_memory: write})

    async def write_all(self, writes: Mapping[ScopeMemory, Write]) -> bool:
        """Write to several scopes in one round trip; a refused write does not stop the others.

        Return whether each scope memory now has all that is stored, also from others. Raise
        `NotWritten` if something was erased in a scope since it was read, or if a field does not
        have its expected value.
        """
        commands: list[Command | ScriptCall] = []
        sent: list[tuple[ScopeMemory, dict[str, str], list[tuple[str, bytes]]]] = []
        for scope_memory, write in writes.items():
            scope, (epoch, erasure) = scope_memory.scope, scope_memory.version
            values, entries = new_values(write), list(map(written, write.entries))
            sent.append((scope_memory, values, entries))
            fields: dict[str, tuple[object, str]] = {}
            for name, value in values.items():
                before = scope_memory.fields.get(name, "")
                digest = {"sha1": sha1(before.encode()).hexdigest()}  # noqa: S324 - for Redis
                fields[name] = digest if len(before) > _MAX_SENT else before, value
            request: dict[str, object] = {
                "epoch": epoch,
                "erasure": erasure,
                "revision": scope_memory.revision,
                "fields": fields,
                "entries": [(kind, at) for at, (kind, _) in enumerate(entries, _FIRST_CONTENT)],
                "ttl_s": self.store.ttl_s,
            }
            if (source := write.learned_from) and source is not scope_memory:
                request["learned_from"] = (source.scope.tag, source.source_epoch)
            writing = self.store.call("write", scope, request, *(json for _, json in entries))
            commands += (self.store.indexing(scope), writing)
        answers = (await self.store.client.pipeline(commands))[1::2]
        is_whole = True
        for (scope_memory, values, entries), answer in zip(sent, answers, strict=True):
            read = orjson.loads(answer)
            if read["outcome"] != "written":
                raise NotWritten(read["outcome"])
            scope_memory.renewed_at = time()
            columns = ({b"k": kind.encode(), b"j": content} for kind, content in entries)
            added = list(enumerate(columns, start=read["first"]))
            stored = StreamDelta(added, fingerprint=scope_memory.fingerprint)
            is_whole &= scope_memory.take_over(read["revision"], stored, values)
        return is_whole

    async def revise(self, scope_memory: ScopeMemory, revision: Revision) -> Receipt:
        """Erase and change parts of a scope in one step; an open turn starts again.

        Raise `NotWritten` if anything was learned or erased since the scope was read, `LeaseLost`
        if the waiting entry was changed or answered, or if a message that it holds was erased.
        """
        scope, version = scope_memory.scope, scope_memory.version
        entries = [*map(written, (*revision.instead, *revision.added))]
        contents: list[Arg] = [content for _, content in entries]
        numbered = [(kind, at) for at, (kind, _) in enumerate(entries, _FIRST_CONTENT)]
        ids = [new.id for new in revision.instead]
        known = ((scope_memory.record(new.id), new) for new in revision.instead)
        reworded = [new.id for old, new in known if old and old.embedded_text != new.embedded_text]
        wanted = {
            "receipt": revision.receipt_id,
            "ttl_s": self.store.ttl_s,
            "epoch": version[0],
            "erasure": version[1],
            "newest": str(scope_memory.newest),
            "known": scope_memory.fields,
            "messages": list(revision.messages),
            "records": list(revision.records),
            "instead": [(id_, *at) for id_, at in zip(ids, numbered[: len(ids)], strict=True)],
            "reworded": reworded,  # their vectors must go
            "added": numbered[len(ids) :],
            "fields": new_values(revision),
        }
        if revision.said is not None:
            wanted["said"] = str(revision.said)
        if message := revision.rewritten:
            wanted["rewritten"] = {"seq": message.seq, **stored_fields(message)}
        is_waiting = True
        if revision.entry:
            contents += revision.entry
            wanted["entry"] = len(contents)
            mailbox = self.store.keys.scope(scope).mailbox
            score = await self.store.client.call("ZSCORE", mailbox, revision.entry[0])
            is_waiting = score is not None  # else the revision is refused, or a repeat
        is_noted = not is_waiting or await self._note(scope_memory, revision)
        answer = orjson.loads(await self.store.run("revise", scope, wanted, *contents))
        erasure = answer.get("erasure", 0)
        self.drop_outdated(scope, erasure, *revision.messages)
        if answer["outcome"] == "gone":
            raise LeaseLost(scope.tag)
        if answer["outcome"] != "done":
            raise NotWritten(answer["outcome"])
        await self.store.tell_erased(scope, erasure, *revision.messages)
        # If Redis was too full for the note, the erasure may have made room for it.
        if not is_noted and not await self._note(scope_memory, revision):
            raise StoreFull("the journal of erasures has no space")
        return Receipt.of(answer["counts"])

    async def wipe(
        self, conversation: Scope, receipt_id: str, last_update: str, until: float
    ) -> Receipt:
        """Erase a conversation, and what waits in it up to an update and a time; safe to repeat."""
        wanted = {"receipt": receipt_id, "last_update": last_update, "until": until}
        counts = await self.store.run("wipe", conversation, {**wanted, "ttl_s": self.store.ttl_s})
        await self.note_clear(conversation)
        return Receipt.of(counts)

    async def note_clear(self, conversation: Scope) -> None:
        """Note everywhere that all of a conversation was erased just now; safe to repeat."""
        await self.store.client.call("ZREM", self.store.keys.looks, conversation.tag)
        await self.store.journal.note_clear(conversation)
        await self.store.tell_erased(conversation)
        self.drop(conversation)

    async def cut(self, scope: Scope, conversation: Scope) -> int:
        """Have this scope refuse what was learned from a conversation before its last clear.

        Return the lowest `ScopeMemory.source_epoch` of the conversation that it still accepts.
        """
        generation, clears = await self.store.read_meta(conversation, "generation", "epoch")
        epoch = int(generation or 0) + int(clears or 0)
        request = {"tag": conversation.tag, "epoch": epoch, "ttl_s": self.store.ttl_s}
        await self.store.run("cut", scope, request)
        return epoch

    async def _note(self, scope_memory: ScopeMemory, revision: Revision) -> bool:
        """Note in the journal what a revision erases; return false if Redis is full."""
        version = scope_memory.generation, int(scope_memory.version[1] or 0)
        rewritten = [revision.rewritten.seq] if revision.rewritten else []
        taken = [*revision.messages, *rewritten], revision.records, revision.removed
        hidden = [astuple(each) for each in revision.added if isinstance(each, Hidden)]
        return await self.store.journal.note_parts(scope_memory.scope, version, taken, hidden)
