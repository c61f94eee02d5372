"""Searches the messages of one conversation by words and, if they have vectors, by meaning."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from time import time

from memory.message import Message
from memory.scopes.message_stream import MessageStream
from memory.scopes.stream import fingerprint_of
from memory.search.arrays import Flags
from memory.search.embeddings import QuestionVectors, Vectors
from memory.search.hybrid import Hit
from memory.search.message_search import RECIPE, SearchFilter, SearchResult
from memory.search.question import asks_for_all, asks_for_first, is_question

_RELATED_SHARE = 4
_MAX_INDEXED_INLINE = 200
_MAX_SEARCHED_INLINE = 20_000
"""With more messages to index first, or to search, a thread does it so that other turns go on."""


@dataclass(frozen=True, slots=True)
class HistorySearch:
    """Searches messages that were read completely; those in `hidden` (sequences) are not found.

    Days are those of `zone`.
    """

    stream: MessageStream
    hidden: Collection[int]
    questions: QuestionVectors
    zone: tzinfo

    async def results(
        self,
        text: str,
        k: int,
        exclude: Collection[int],
        search_filter: SearchFilter,
        *,
        is_alone: bool = False,
    ) -> list[SearchResult]:
        """Return at most `k` messages about `text`, best first, each with its exchange.

        After them come at most `k // 4` messages that resemble the best one (re-query), and if a
        question asks for a list and there are no vectors, at most `k` that say much. A question for
        the first thing that was said begins with the first messages. If it `is_alone`, none of
        these are added. `exclude` has sequences of messages that are not found.
        """
        if not self.stream.messages:
            return []
        query = await self._query_vector(text)
        among = (exclude, search_filter)
        find = partial(self._found, text, query, k, among, is_alone=is_alone)
        is_long = len(self.stream.messages) > _MAX_SEARCHED_INLINE
        is_long = is_long or self.stream.unindexed > _MAX_INDEXED_INLINE
        if is_long or self.stream.searching.locked():
            return await asyncio.to_thread(find)
        return find()

    def _found(
        self,
        text: str,
        query: Vectors | None,
        k: int,
        among: tuple[Collection[int], SearchFilter],
        *,
        is_alone: bool,
    ) -> list[SearchResult]:
        with self.stream.searching:  # a row stands for its message only while it is held
            index = self.stream.indexed(self.zone)
            # Only now, because a turn may have appended messages in between.
            allowed = self._allowed(*among)[: len(index.ids)]
            today = datetime.fromtimestamp(time(), self.zone).date()
            hits = index.search(text, query, k, allowed, today)
            if not is_alone and is_question(text):
                first = index.index.first_said(allowed) if asks_for_first(text) else []
                best = self.stream.messages[hits[0].row].text if hits else ""
                related = index.index.related(hits, k // _RELATED_SHARE, allowed, best)
                hits = [*first, *hits, *related]
                if query is None and hits and asks_for_all(text):
                    hits += index.index.statements_of_rare_words(text, k, allowed)
            once: dict[int, Hit] = {}
            for hit in hits:
                once.setdefault(hit.row, hit)
            return [self._result(hit) for hit in once.values()]

    def messages_of(
        self, seqs: Iterable[int], k: int, search_filter: SearchFilter
    ) -> list[SearchResult]:
        """Return the first `k` messages with these sequences that may be found."""
        allowed = self._allowed((), search_filter)
        rows = (self.stream.position(seq) for seq in seqs)
        found = [row for row in rows if row is not None and allowed[row]]
        return [self._result(Hit(row)) for row in found[:k]]

    def _allowed(self, exclude: Collection[int], search_filter: SearchFilter) -> Flags:
        """Return which messages may be hit, `(len(messages),)` bool."""
        allowed = search_filter.mask(self.stream.messages)
        for seq in (*exclude, *self.hidden, *self.stream.refused):
            position = self.stream.position(seq)
            if position is not None and position < len(allowed):
                allowed[position] = False
        return allowed

    async def _query_vector(self, text: str) -> Vectors | None:
        """Embed the text; None if its vector could not be compared with those of the messages."""
        embedder = self.questions.embedder
        if embedder is None or self.stream.fingerprint != fingerprint_of(embedder, RECIPE):
            return None
        if not self.stream.is_embedded:  # a message without a vector would look unrelated
            return None
        return await self.questions.vector(text)

    def _result(self, hit: Hit) -> SearchResult:
        return SearchResult(
            messages=self._exchange_around(hit.row),
            score=hit.score,
            seq=self.stream.messages[hit.row].seq,
            lexical=hit.lexical,
            dense=hit.dense,
            is_boosted=hit.is_boosted,
        )

    def _exchange_around(self, position: int) -> tuple[Message, ...]:
        messages = self.stream.messages
        number, first, end = messages[position].exchange, position, position + 1
        while first and messages[first - 1].exchange == number:
            first -= 1
        while end < len(messages) and messages[end].exchange == number:
            end += 1
        return tuple(messages[first:end])
