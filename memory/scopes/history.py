"""`ChatHistory`: the messages of one conversation, to append to, to select from and to search.

It is valid for one version of the conversation. After an erasure its writes are refused.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from secrets import token_hex
from time import time

from memory.message import Message
from memory.scopes.fact_lists import known_facts, of_kind, with_facts
from memory.scopes.log import UNKNOWN, Cursor, Delta, stored_fields
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.selectors import MessageSelector
from memory.scopes.stream import MessageStream
from memory.search.embeddings import QuestionVectors, load_index
from memory.search.message_search import EVERYTHING, RECIPE, Hit, SearchFilter, SearchResult
from memory.search.question import asks, asks_for_all, asks_for_first
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter

_FOR_ALL_TIME = 2**53
_HIDDEN = "[removed from memory]"
_RELATED_SHARE, _MIN_RELATED = 4, 2
_MAX_INDEXED_INLINE_BYTES = 16_000
_MAX_SEARCHED_INLINE = 20_000
_MAX_ASKED_INLINE = 500
"""With more to index, more messages to search, or a longer question (in characters), a thread
searches, so that other turns go on."""


@dataclass(frozen=True, slots=True)
class Histories:
    """What all histories of a process share. A turn loads the newest `tail` messages."""

    scopes: Scopes
    tokens: TokenCounter
    question_vectors: QuestionVectors
    tail: int

    def cursor(self, conversation: Scope) -> Cursor:
        """Return what this process has read already; a turn loads only what is newer."""
        cursor, person = self.scopes.cursor(conversation), conversation.facts_scope
        if person == conversation:
            return cursor
        return replace(cursor, facts=self.scopes.cursor(person))


class ChatHistory:
    """The messages of one conversation, oldest first."""

    def __init__(self, histories: Histories, here: ScopeMemory, messages: MessageStream) -> None:
        self._histories = histories
        self._here = here
        self._stream = messages
        self.conversation, self.version = here.scope, here.version  # (epoch, erasure)
        self.zone = histories.scopes.zone_of(here.scope)  # of its days, also if the cache drops it

    @classmethod
    async def of_turn(
        cls, histories: Histories, conversation: Scope, delta: Delta, facts_delta: Delta | None
    ) -> "ChatHistory":
        """Return the history that an open turn has loaded.

        It also brings up to date what this process holds of the person's facts, which behaviors
        read later in the turn. What the turn's load left out is read now: records, facts, or
        messages that the cache has dropped. Raise `LeaseLost` if something was erased since then.
        """
        scopes = histories.scopes
        loaded = scopes.join(conversation, delta, histories.tail)
        said = loaded.messages
        here = loaded if loaded.is_whole else await scopes.read(conversation)
        person = conversation.facts_scope
        if person != conversation:
            facts = scopes.join(person, facts_delta, histories.tail) if facts_delta else None
            if facts is None or not facts.is_whole:
                await scopes.read(person)
        if here.version != loaded.version:
            raise LeaseLost(conversation.tag)
        history = cls(histories, here, said)
        # The cache may have lost what the turn did not read again.
        if said.length == UNKNOWN or len(said.messages) < min(histories.tail, said.length):
            await history.fill()
        return history

    @classmethod
    async def read(cls, histories: Histories, conversation: Scope) -> "ChatHistory":
        """Read all of a conversation outside of any turn, of a moved group under its old id."""
        [moved_from] = await histories.scopes.store.read_meta(conversation, "moved_from")
        if moved_from is not None:
            conversation = Scope(moved_from.decode())
        await histories.scopes.current(conversation.facts_scope)  # which has the time zone
        here = await histories.scopes.read_conversation(conversation)
        return cls(histories, here, here.messages)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages in memory, oldest first; after `fill` all that its limit allows."""
        return self._stream.messages

    @property
    def last_user_message(self) -> Message | None:
        """The newest message of a person, None if there is none."""
        return next((m for m in reversed(self._stream.messages) if m.role == "user"), None)

    @property
    def hidden(self) -> Collection[int]:
        """The sequences of messages that were taken out of recall."""
        return self._here.hidden

    @property
    def is_searchable(self) -> bool:
        """Whether there may be messages; false only if nothing is stored."""
        return self._stream.length != 0

    async def is_off(self) -> bool:
        """Return whether memory is turned off in this conversation."""
        [off_at] = await self._histories.scopes.store.read_meta(self.conversation, "off_at")
        return off_at is not None

    def select_messages(self, selector: MessageSelector) -> tuple[Message, ...]:
        """Return what the selector takes of the session, without refused and hidden messages.

        An answer that is hidden, but not its question, leaves a placeholder: else its question
        would seem to be asked once more.
        """
        messages = self._stream.messages
        first = bisect_right(messages, self._stream.session, key=lambda message: message.seq)
        tail = messages[max(first, len(messages) - self._histories.tail) :]
        shown = [m for m in tail if not m.is_refused and m.seq not in self.hidden]
        asked = {message.exchange for message in shown if message.role == "user"}
        shown += (
            replace(m, text=_HIDDEN, tokens=self._histories.tokens.count(_HIDDEN))
            for m in tail
            if m.seq in self.hidden and m.role == "assistant" and m.exchange in asked
        )
        return selector.select(sorted(shown, key=lambda message: message.seq))

    async def search(
        self,
        text: str,
        k: int,
        *,
        exclude: Collection[int] = (),
        search_filter: SearchFilter = EVERYTHING,
    ) -> list[SearchResult]:
        """Return at most `k` messages that `text` is about, best first, each with its exchange.

        A question finds more than these: `search_in_memory` says what. Messages with a sequence in
        `exclude` are not found, and `search_filter` leaves out others. An unrelated text finds
        nothing. Without vectors words alone decide. Raise `LeaseLost` if messages had to be read
        and something was erased since the history was loaded.
        """
        if not text.strip() or k <= 0:
            return []
        await self.fill()
        return await self.search_in_memory(text, k, exclude, search_filter)

    async def search_in_memory(
        self,
        text: str,
        k: int,
        exclude: Collection[int] = (),
        search_filter: SearchFilter = EVERYTHING,
        *,
        is_alone: bool = False,
    ) -> list[SearchResult]:
        """Search as `search` does, but only the messages in memory.

        For a question more is found, unless it `is_alone`: the first messages if it asks for the
        first thing that was said; what its last line finds by its own words, so that lines before
        it do not drown it; a quarter as many that resemble the best ones, at least two (re-query);
        and, if it asks for a list and there are no vectors, at most `k` statements of rare words.
        """
        stream = self._stream  # another search of this turn may replace it meanwhile
        if all(message.seq in exclude for message in stream.messages):
            return []  # in a young conversation the window shows all
        await load_index()
        query, zone = None, self.zone
        if stream.is_embedded:  # otherwise a message without a vector would look unrelated
            query = await self._histories.question_vectors.vector(text, stream.fingerprint, RECIPE)

        def find() -> list[SearchResult]:
            with stream.searching:  # a row stands for its message only while it is held
                index = stream.indexed(zone)
                # Only now, because a turn may have appended messages in between.
                mask = self._allowed(stream, exclude, search_filter)
                allowed = index.flags(mask[: len(index.ids)])
                today = datetime.fromtimestamp(time(), zone).date()
                hits = index.search(text, query, k, allowed, today)
                if not is_alone and asks(text):
                    first = index.first_said(allowed) if asks_for_first(text) else []
                    before, _, last = text.rpartition("\n")
                    own = index.search(last, None, k, allowed, today) if before else []
                    related: list[Hit] = []
                    for found in (own, hits):
                        if found:
                            few = max(_MIN_RELATED, len(found) // _RELATED_SHARE)
                            best = stream.messages[found[0].row].text
                            related += index.related(found, few, allowed, best)
                    hits = [*first, *own, *hits, *related]
                    if query is None and hits and asks_for_all(last):
                        hits += index.statements_of_rare_words(text, k, allowed)
                once: dict[int, Hit] = {}
                for hit in hits:
                    once.setdefault(hit.row, hit)
                return [_result(stream.messages, hit) for hit in once.values()]

        is_long = len(stream.messages) > _MAX_SEARCHED_INLINE or len(text) > _MAX_ASKED_INLINE
        is_long = is_long or stream.unindexed_bytes > _MAX_INDEXED_INLINE_BYTES
        if is_long or stream.searching.locked():
            return await asyncio.to_thread(find)
        return find()

    def _allowed(
        self, stream: MessageStream, exclude: Collection[int], wanted: SearchFilter
    ) -> bytearray:
        """Return one byte for each message: 1 if it may be hit, else 0."""
        allowed = bytearray(b"\1") * len(stream.messages)
        if wanted != EVERYTHING:
            speaker = wanted.speaker.casefold()
            allowed = bytearray(
                wanted.since <= m.sent_at < wanted.until
                and speaker in (m.sender_name or m.role).casefold()
                and bool(wanted.is_meant is None or wanted.is_meant(m))
                for m in stream.messages
            )
        for seq in (*exclude, *self.hidden, *stream.refused):
            position = stream.position(seq)
            if position is not None and position < len(allowed):
                allowed[position] = False
        return allowed

    async def with_facts(self, found: Sequence[SearchResult]) -> list[SearchResult]:
        """Return results with what facts say about their messages; not for talk off the record."""
        return with_facts(found, await self._facts(), self._here)

    async def of_kind(
        self, kind: str, k: int, search_filter: SearchFilter = EVERYTHING
    ) -> list[SearchResult]:
        """Return the newest `k` messages that facts of a kind rest on; not off the record."""
        facts = known_facts(await self._facts(), self._here)
        sources = (each for fact in await of_kind(facts, kind) for each in fact.sources)
        seqs = {*self._here.seqs_of(sources)}
        await self.fill()
        stream = self._stream
        allowed = self._allowed(stream, (), search_filter)
        rows = (stream.position(seq) for seq in sorted(seqs, reverse=True))
        found = [row for row in rows if row is not None and allowed[row]]
        return [_result(stream.messages, Hit(row)) for row in found[:k]]

    async def _facts(self) -> ScopeMemory:
        facts_scope = self.conversation.facts_scope
        is_here = facts_scope == self.conversation
        return self._here if is_here else await self._histories.scopes.current(facts_scope)

    async def append_user_message(
        self, text: str, sent_at: float, *, sender_id: int = 0, sender_name: str = ""
    ) -> Message:
        """Append a person's message, as a new exchange; raise `LeaseLost` after an erasure."""
        return await self._append(Message(0, 0, "user", text, sent_at, sender_id, sender_name))

    async def append_assistant_message(self, text: str, sent_at: float) -> Message:
        """Append a reply to the newest exchange; raise `LeaseLost` after an erasure."""
        exchange = self._stream.messages[-1].exchange if self._stream.messages else 0
        return await self._append(Message(0, 0, "assistant", text, sent_at), exchange)

    def committed(self, messages: Sequence[Message], exchange: int, first_seq: int) -> None:
        """Add messages that a commit has just stored; the first has the sequence `first_seq`."""
        new = enumerate(messages, start=first_seq)
        numbered = [replace(message, seq=seq, exchange=exchange) for seq, message in new]
        if first_seq == 1 and not self._here.generation:
            # In ms, from the time as it is stored.
            self._here.generation = round(1000 * float(f"{numbered[0].sent_at:.3f}"))
        newest, count = self._stream.newest, self._stream.count
        self._stream.append(numbered)
        # All are here already if somebody has read the conversation since the commit.
        if newest in (first_seq - 1, first_seq - 1 + len(numbered)):
            self._stream.length += self._stream.count - count
            self._histories.scopes.keep(self._here)
        else:  # other messages came, or some were erased, in between: read all of it again
            self._stream.length = UNKNOWN
            self._histories.scopes.drop(self.conversation)

    async def clear(self) -> None:
        """Erase the conversation and its waiting messages at once, even during a turn."""
        scopes = self._histories.scopes
        await scopes.wipe(self.conversation, token_hex(8), "+inf", _FOR_ALL_TIME)
        self._here = await scopes.read_conversation(self.conversation)
        self._stream = self._here.messages

    async def fill(self) -> None:
        """Read the messages and vectors that are missing; raise `LeaseLost` after an erasure."""
        if self._stream.is_whole:
            return
        scopes = self._histories.scopes
        version, stream = await scopes.read_messages(self.conversation)
        if version != self._here.version:
            raise LeaseLost(self.conversation.tag)
        self._stream = self._here.messages = stream
        scopes.keep(self._here)

    async def _append(self, message: Message, exchange: int = 0) -> Message:
        store = self._histories.scopes.store
        message = replace(message, tokens=self._histories.tokens.count(message.text))
        epoch, erasure = self._here.version
        request = {"epoch": epoch, "erasure": erasure, "ttl_s": store.ttl_s}
        request |= {"exchange": exchange} if exchange else {}
        request |= {"messages": [stored_fields(message)]}
        append = store.call("append", self.conversation, request)
        # Erasures find the conversation by the first two. There is no update to write as
        # `<id>|<ms>`, and the value only has to be new.
        said = ("HSET", store.keys.person(message.sender_id), self.conversation.tag, token_hex(8))
        by_person = [said] if message.sender_id else []
        index = store.indexing(self.conversation)
        *_, answer = await store.client.pipeline([index, *by_person, append])
        if answer[0] != b"appended":
            raise LeaseLost(self.conversation.tag)
        self.committed([message], int(answer[1]), int(answer[2]))
        return self._stream.messages[-1]


def _result(messages: Sequence[Message], hit: Hit) -> SearchResult:
    number, first, end = messages[hit.row].exchange, hit.row, hit.row + 1
    while first and messages[first - 1].exchange == number:
        first -= 1
    while end < len(messages) and messages[end].exchange == number:
        end += 1
    return SearchResult(
        messages=tuple(messages[first:end]),
        score=hit.score,
        seq=messages[hit.row].seq,
        lexical=hit.lexical,
        dense=hit.dense,
        is_boosted=hit.is_boosted,
    )
