"""`ChatHistory`: the messages of one conversation, to select from and to search.

It is valid for one version of the conversation; after an erasure its writes are refused. Without
vectors it searches by words alone.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from secrets import token_hex
from time import time
from typing import ParamSpec, TypeVar

from memory.message import Message, Role
from memory.scopes.delta import Cursor, Delta, StreamDelta
from memory.scopes.log import generation_of, seq_of, stored_fields
from memory.scopes.message_stream import MessageStream
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.selectors import MessageSelector
from memory.scopes.stream import fingerprint_of
from memory.search.embeddings import QuestionVectors, Vectors
from memory.search.growing import Flags
from memory.search.hybrid import Hit
from memory.search.message_search import EVERYTHING, RECIPE, SearchFilter, SearchResult
from memory.store.commands import Command, Reply
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.store.store import Store
from memory.text.tokens import TokenCounter

_ALL_THAT_WAITS = "+inf"
_FOR_ALL_TIME = 2**53
_MESSAGES_AN_EXCHANGE = 2
_RELATED_SHARE = 4
_UNREAD = -1
_PAGE = 200
_MUCH = 200
"""Messages to index before a search that are worth a thread."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HistoryParts:
    """What every history of a process shares."""

    store: Store
    scopes: Scopes
    tokens: TokenCounter
    questions: QuestionVectors
    tail: int

    def cursor(self, conversation: Scope) -> Cursor:
        """Return what a turn of a conversation need not read again."""
        cursor, person = self.scopes.cursor(conversation), conversation.facts_scope
        if person == conversation:
            return cursor
        return replace(cursor, facts=self.scopes.cursor(person))

    def drop(self, conversation: Scope) -> None:
        """Drop what this process has read of a conversation."""
        self.scopes.drop(conversation)


class ChatHistory:
    """The messages of one conversation, oldest first."""

    def __init__(self, parts: HistoryParts, here: ScopeMemory, messages: MessageStream) -> None:
        self._parts = parts
        self._here = here
        self._said = messages
        self.conversation = here.scope

    @classmethod
    async def of_turn(
        cls, parts: HistoryParts, conversation: Scope, delta: Delta, facts_delta: Delta | None
    ) -> "ChatHistory":
        """Return the history that an open turn loaded; one more read if a long one is cold.

        Raise `LeaseLost` if something was erased since.
        """
        scopes = parts.scopes
        here = loaded = scopes.join(conversation, delta, parts.tail)
        said = loaded.messages
        if not loaded.is_whole:
            here = await scopes.read(conversation)
        person = conversation.facts_scope
        if person != conversation:
            facts = scopes.join(person, facts_delta, parts.tail) if facts_delta else None
            if facts is None or not facts.is_whole:
                await scopes.read(person)
        if here.version != loaded.version:
            raise LeaseLost(conversation.tag)
        history = cls(parts, here, said)
        if len(said.messages) < min(parts.tail, said.length):
            await history.fill()
        return history

    @classmethod
    async def read(cls, parts: HistoryParts, conversation: Scope) -> "ChatHistory":
        """Read a conversation whole, outside of any turn; of a moved group that of the old one."""
        meta = parts.store.keys.scope(conversation).meta
        moved_from = await parts.store.client.call("HGET", meta, "moved_from")
        if moved_from is not None:
            conversation = Scope(moved_from.decode())
        here = await _whole(parts, conversation)
        return cls(parts, here, here.messages)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages held, newest last; all of them after `fill`."""
        return self._said.messages

    @property
    def last_user_message(self) -> Message | None:
        """The newest message a person said."""
        return next((m for m in reversed(self._said.messages) if m.role == "user"), None)

    @property
    def is_searchable(self) -> bool:
        """Whether anything was said here; words are searched even where there are no vectors."""
        return self._said.length != 0

    async def is_off(self) -> bool:
        """Say whether remembering is turned off here."""
        store = self._parts.store
        meta = store.keys.scope(self.conversation).meta
        return bool(await store.client.call("HEXISTS", meta, "off_at"))

    def select_messages(self, selector: MessageSelector) -> tuple[Message, ...]:
        """Return what the selector takes of the newest messages of the current session.

        Messages that the model's server refused are left out.
        """
        messages = self._said.messages
        first = bisect_right(messages, self._said.session, key=lambda message: message.seq)
        tail = messages[max(first, len(messages) - self._parts.tail) :]
        return selector.select([message for message in tail if not message.is_refused])

    async def search(
        self,
        text: str,
        k: int,
        *,
        exclude: Collection[int] = (),
        search_filter: SearchFilter = EVERYTHING,
    ) -> list[SearchResult]:
        """Return at most `k` exchanges of this conversation that `text` is about, best first.

        Behind them come at most a quarter as many that resemble the best one (re-query). `exclude`
        names sequences that need not be found, `among` narrows what is looked at. An unrelated text
        finds nothing. Words serve alone where there are no vectors. Raise `LeaseLost` like `fill`.
        """
        most = _MESSAGES_AN_EXCHANGE * k
        hits, allowed = await self._hits(text, most, exclude, search_filter)
        if not hits:
            return []
        found = self._recollections(hits, k, {})
        related = self._said.indexed().index.related(hits, most, allowed)
        found = self._recollections(related, len(found) + k // _RELATED_SHARE, found)
        return list(found.values())

    async def find(
        self,
        text: str,
        k: int,
        *,
        exclude: Collection[int] = (),
        search_filter: SearchFilter = EVERYTHING,
    ) -> list[Hit]:
        """Return at most `k` single messages as `search` does; a hit's `row` counts `messages`."""
        hits, _ = await self._hits(text, k, exclude, search_filter)
        return hits

    async def _hits(
        self, text: str, k: int, exclude: Collection[int], search_filter: SearchFilter
    ) -> tuple[list[Hit], Flags | None]:
        """Return the hits, and which messages might have been hit."""
        if not text.strip() or k <= 0:
            return [], None
        await self.fill()
        if not self._said.messages:
            return [], None
        query = await self._query_vector(text)
        work, allowed = self._said.unindexed, self._allowed(exclude, search_filter)
        return await _beside(work, self._find, text, query, k, allowed), allowed

    def _find(self, text: str, query: Vectors | None, k: int, allowed: Flags) -> list[Hit]:
        return self._said.indexed().search(text, query, k, allowed)

    def _allowed(self, exclude: Collection[int], search_filter: SearchFilter) -> Flags:
        """Return which messages may be hit, `(len(messages),)`."""
        allowed = search_filter.mask(self._said.messages)
        for seq in (*exclude, *self._here.hidden, *self._said.refused):
            at = self._said.position(seq)
            if at is not None:
                allowed[at] = False
        return allowed

    async def _query_vector(self, text: str) -> Vectors | None:
        questions = self._parts.questions
        embedder = questions.embedder
        if embedder is None or self._said.fingerprint != fingerprint_of(embedder, RECIPE):
            return None
        if not self._said.is_embedded:  # what has no vector would look far from every question
            return None
        return await questions.vector(text)

    async def append_user_message(
        self, text: str, sent_at: float, *, sender_id: int = 0, sender_name: str = ""
    ) -> Message:
        """Append what a person said, opening an exchange; raise `LeaseLost` after an erasure."""
        said = self._draft("user", text, sent_at)
        return await self._append(replace(said, sender_id=sender_id, sender_name=sender_name), "")

    async def append_assistant_message(self, text: str, sent_at: float) -> Message:
        """Append a reply to the newest exchange; raise `LeaseLost` after an erasure."""
        exchange = self._said.messages[-1].exchange if self._said.messages else ""
        return await self._append(self._draft("assistant", text, sent_at), exchange)

    def committed(self, messages: Sequence[Message], exchange: int, first_seq: int) -> None:
        """Join on messages that a commit has just stored."""
        numbered = [
            replace(message, seq=first_seq + i, exchange=exchange)
            for i, message in enumerate(messages)
        ]
        if first_seq == 1:
            self._here.generation = generation_of(numbered[0])
        is_next = first_seq == self._said.newest + 1
        self._said.append(numbered)
        if is_next:
            self._said.length += len(numbered)
            self._parts.scopes.keep(self._here)
        else:  # something was said or erased in between; the next search or turn reads it
            self._said.length = _UNREAD
            self._parts.scopes.drop(self.conversation)

    async def clear(self) -> None:
        """Erase the conversation and what waits in it at once, whoever holds its lease."""
        store = self._parts.store
        keys = store.keys.scope(self.conversation).all
        arguments = (token_hex(8), _ALL_THAT_WAITS, store.ttl_s, _FOR_ALL_TIME)
        await store.scripts["wipe"](keys, arguments)
        await store.tell_erased(self.conversation)
        self._parts.scopes.drop(self.conversation)
        self._here = await _whole(self._parts, self.conversation)
        self._said = self._here.messages

    async def fill(self) -> None:
        """Read what is missing of messages and vectors; raise `LeaseLost` after an erasure."""
        if self._said.is_whole:
            return
        version, said = await _stored(self._parts, self.conversation)
        if version != self._here.version:
            raise LeaseLost(self.conversation.tag)
        self._hold(said)

    def _hold(self, said: MessageStream) -> None:
        self._said = self._here.messages = said
        self._parts.scopes.keep(self._here)

    def _recollections(
        self, hits: Iterable[Hit], most: int, found: dict[int, SearchResult]
    ) -> dict[int, SearchResult]:
        """Add exchanges that are hit, up to `most`; of one hit twice the better hit counts."""
        for hit in hits:
            if len(found) >= most:
                break
            exchange = self._exchange_around(hit.row)
            if exchange[0].exchange not in found:
                found[exchange[0].exchange] = SearchResult(
                    messages=exchange,
                    score=hit.score,
                    seq=self._said.messages[hit.row].seq,
                    lexical=hit.lexical,
                    dense=hit.dense,
                    is_boosted=hit.is_boosted,
                )
        return found

    def _exchange_around(self, at: int) -> tuple[Message, ...]:
        """Return the messages of an exchange, of which one stands at `at`; they stand together."""
        messages = self._said.messages
        number, first, end = messages[at].exchange, at, at + 1
        while first and messages[first - 1].exchange == number:
            first -= 1
        while end < len(messages) and messages[end].exchange == number:
            end += 1
        return tuple(messages[first:end])

    def _draft(self, role: Role, text: str, sent_at: float) -> Message:
        return Message(0, 0, role, text, sent_at, tokens=self._parts.tokens.count(text))

    async def _append(self, message: Message, exchange: int | str) -> Message:
        store = self._parts.store
        epoch, erasure = self._here.version
        request = {
            "epoch": epoch,
            "erasure": erasure,
            "ttl_s": store.ttl_s,
            "messages": [stored_fields(message)],
            **({"exchange": exchange} if exchange else {}),
        }
        keys = store.keys.scope(self.conversation).all
        append = store.scripts["append"].command(keys, request)
        *_, answer = await store.client.pipeline([*self._indexed(message.sender_id), append])
        if answer[0] != b"appended":
            raise LeaseLost(self.conversation.tag)
        self.committed([message], int(answer[1]), int(answer[2]))
        return self._said.messages[-1]

    def _indexed(self, sender_id: int) -> list[Command]:
        """Name the conversation where erasures look for it, before anything is stored in it."""
        keys, tag = self._parts.store.keys, self.conversation.tag
        by_activity = ("ZADD", keys.index_of(self.conversation), int(time()), tag)
        # No update, so no `<id>|<ms>`: a stamp that only differs from the one before.
        by_person = ("HSET", keys.person(sender_id), tag, token_hex(8))
        return [by_activity, by_person] if sender_id else [by_activity]


async def _whole(parts: HistoryParts, conversation: Scope) -> ScopeMemory:
    """Read all of a conversation under one version, and keep it."""
    while True:
        version, said = await _stored(parts, conversation)
        here = await parts.scopes.read(conversation)
        if here.version == version:
            here.messages = said
            parts.scopes.keep(here)
            return here


async def _stored(
    parts: HistoryParts, conversation: Scope
) -> tuple[tuple[str, str], MessageStream]:
    """Read all messages and vectors under one version; a short conversation in one round trip.

    It reads in pages, because Redis counts what it is about to send as memory in use.
    """
    keys = parts.store.keys.scope(conversation)
    names = ("epoch", "erasure", "vector_fingerprint", "session", "generation")
    stored: dict[str, list[Reply]] = {keys.log: [], keys.vectors: []}
    seen, widths = set(), set()
    is_whole = False
    while not is_whole:
        pages = [
            ("XRANGE", name, b"(" + entries[-1][0] if entries else "-", "+", "COUNT", _PAGE)
            for name, entries in stored.items()
        ]
        version = ("HMGET", keys.meta, *names)
        before, *found, after = await parts.store.client.pipeline([version, *pages, version])
        seen |= {tuple(before), tuple(after)}
        widths |= {len(fields[b"v"]) for _, fields in found[1]}
        if len(seen) > 1 or len(widths) > 1:  # something was erased or embedded again meanwhile
            return await _stored(parts, conversation)
        for entries, page in zip(stored.values(), found, strict=True):
            entries.extend(page)
        is_whole = max(map(len, found)) < _PAGE
    log, vectors = stored.values()
    said = MessageStream()
    said.session = int(after[3] or 0)
    said.add(
        StreamDelta(
            entries=[(seq_of(entry), fields) for entry, fields in log],
            length=len(log),
            fingerprint=(after[2] or b"").decode(),
            vectors=[(seq_of(entry), fields[b"v"]) for entry, fields in vectors],
            vectors_length=len(vectors),
        )
    )
    return version_of(after), said


async def _beside(work: int, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call in a thread when there is much to do, so that other conversations go on."""
    if work > _MUCH:
        return await asyncio.to_thread(call, *args, **kwargs)
    return call(*args, **kwargs)


def version_of(answer: Sequence[Reply]) -> tuple[str, str]:
    """Read epoch and erasure counter, the first two of a reply."""
    return (answer[0] or b"0").decode(), (answer[1] or b"0").decode()
