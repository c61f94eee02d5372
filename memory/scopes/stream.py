"""A stream of a scope with the vectors of its entries, as far as this process has read it.

Records and messages are kept in the same way; `MessageStream` has those of a conversation. Entries
are indexed at the next search.
"""

import sys
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, tzinfo
from operator import itemgetter
from typing import TYPE_CHECKING

import structlog

from memory.message import Message
from memory.scopes.log import UNKNOWN, Columns, StreamDelta, message_of
from memory.search.embeddings import index_class
from memory.search.message_search import SESSION_PAUSE_S, IndexRecord

if TYPE_CHECKING:
    from memory.search.hybrid import HybridIndex

log = structlog.get_logger(__name__)

_ROWS_AT_ONCE = 4_096
"""Vectors that are joined into one array at a time; with 512 dimensions they take 2 MB."""
_MESSAGE_OVERHEAD_BYTES = 400
_INDEXED_AT_ONCE = 2_000
_INDEXED_CHARS_AT_ONCE = 250_000
"""The numbers of the words of so many messages, and of so many characters, are in memory while
indexing."""
_QUARTER_S = 900  # in each zone a day begins with a quarter of an hour
_MIN_KEPT = 20  # so many newest messages are searched whatever memory they take
_SHORTENED_SHARE = 2
"""A conversation that takes too much memory keeps one part of that in so many, so that it may grow
again."""
_FRESH = 10  # so many messages may have no vector yet, because embedding follows the replies


class EmbeddedStream:
    """A stream of entries and the stream of their packed vectors."""

    def __init__(self) -> None:
        self.fingerprint = ""
        self.length = self.vectors_length = UNKNOWN  # of what is stored
        self.newest = self.count = 0  # all up to this id was read, and how many entries that were
        self.newest_vector = self.vectors_count = 0
        self._waiting: list[tuple[int, bytes]] = []  # vectors to index, by their ids, ascending
        self._vector_bytes = 0  # of each of them
        self._text_bytes = 0

    @property
    def is_whole(self) -> bool:
        """Whether all stored entries and vectors are here."""
        return self.count == self.length and self.vectors_count == self.vectors_length

    @property
    def nbytes(self) -> int:
        """Roughly the bytes in memory, without indexes."""
        return self._text_bytes + len(self._waiting) * self._vector_bytes

    def joins(self, delta: StreamDelta) -> bool:
        """Return whether what was read has vectors of the same model as the entries here."""
        if delta.vectors and self._vector_bytes not in (0, len(delta.vectors[0][1])):
            return False
        return self.fingerprint == delta.fingerprint or not self.vectors_count

    def add(self, delta: StreamDelta) -> None:
        """Add entries for which `joins` is true, except those that are here already."""
        self.fingerprint = delta.fingerprint
        if delta.length != UNKNOWN:
            self.length, self.vectors_length = delta.length, delta.vectors_length
        self._take([each for each in delta.entries if each[0] > self.newest])
        self.newest = max(self.newest, delta.newest)
        vectors = [each for each in delta.vectors if each[0] > self.newest_vector]
        if vectors:
            self._waiting.extend(vectors)
            self.vectors_count += len(vectors)
            self.newest_vector, newest = vectors[-1]
            self._vector_bytes = len(newest)

    def taken_vectors(self) -> Iterator[tuple[Sequence[int], Sequence[bytes]]]:
        """Yield the ids and the vectors that wait, some at a time, and remove them.

        Vectors of entries that were not read yet go on waiting.
        """
        until = bisect_right(self._waiting, self.newest, key=itemgetter(0))
        waiting, self._waiting = self._waiting[:until], self._waiting[until:]
        for start in range(0, len(waiting), _ROWS_AT_ONCE):
            ids, vectors = zip(*waiting[start : start + _ROWS_AT_ONCE], strict=True)
            yield ids, vectors

    def _take(self, entries: Sequence[tuple[int, Columns]]) -> None:
        """Keep stored entries, and count them and their bytes."""
        raise NotImplementedError


class MessageStream(EmbeddedStream):
    """The newest messages without a gap, at most `max_bytes`; row n of the index is message n."""

    def __init__(self) -> None:
        super().__init__()
        self.max_bytes = sys.maxsize
        self.messages: list[Message] = []
        self.refused: list[int] = []  # sequences of messages that the model's server refused
        self.session = 0  # messages up to this one belong to earlier sessions
        # Held by a search: other topics may search this stream; an index serves one thread at once.
        self.searching = threading.Lock()
        self._index: HybridIndex | None = None
        self._sessions = 0
        self._indexed_bytes = 0  # of the texts that are indexed

    @property
    def nbytes(self) -> int:
        """Roughly the bytes in memory."""
        index = self._index  # a search in a thread may shorten the stream
        return super().nbytes + (index.nbytes if index else 0)

    @property
    def is_embedded(self) -> bool:
        """Whether all messages have vectors, except a tenth of them or the ten newest."""
        missing = self.count - len(self.refused) - self.vectors_count
        return missing <= max(_FRESH, len(self.messages) // 10)

    @property
    def unindexed_bytes(self) -> int:
        """Roughly the bytes of texts and vectors that the next search has to index first."""
        is_kept = self._index and self.nbytes <= self.max_bytes
        return super().nbytes - (self._indexed_bytes if is_kept else 0)

    def append(self, messages: Sequence[Message]) -> None:
        """Append messages in the order of their sequences, except those that are here already."""
        new = [message for message in messages if message.seq > self.newest]
        self.messages += new
        self.refused += [message.seq for message in new if message.is_refused]
        self.newest = new[-1].seq if new else self.newest
        self.count += len(new)
        self._text_bytes += sum(map(_bytes_of, new))

    def indexed(self, zone: tzinfo) -> "HybridIndex":
        """Index new messages by the days of `zone`, in about 0.02 ms each; return the index."""
        index = self._index = self._index or index_class()()
        while len(index) < len(self.messages):
            first, chars, records = len(index), 0, list[IndexRecord]()
            said = self.messages[first : first + _INDEXED_AT_ONCE]
            before = self.messages[first - 1 if first else 0].sent_at
            quarter = float("nan")  # equals no other
            for message in said:
                at, is_answer = message.sent_at, message.role == "assistant"
                self._sessions += at - before > SESSION_PAUSE_S
                if (of_message := at // _QUARTER_S) != quarter:
                    quarter, day = of_message, datetime.fromtimestamp(at, zone).date()
                records.append(IndexRecord(message.embedded_text, self._sessions, is_answer, day))
                before = at
                chars += len(message.text)
                if chars > _INDEXED_CHARS_AT_ONCE:
                    break
            index.extend(records, [message.seq for message in said[: len(records)]])
            self.shorten()
            index = self._index = self._index or index_class()()
        self._indexed_bytes = self._text_bytes
        for seqs, vectors in self.taken_vectors():
            index.put_stored(seqs, vectors)
        return index

    def shorten(self) -> None:
        """Leave the oldest messages out if they take too much memory; index the others again."""
        said, index = self.messages, self._index
        if self.nbytes <= self.max_bytes or len(said) <= _MIN_KEPT:
            return
        room = self._text_bytes * self.max_bytes / self.nbytes / _SHORTENED_SHARE
        first = len(said)
        while first and (room > 0 or len(said) - first < _MIN_KEPT):
            first -= 1
            room -= _bytes_of(said[first])
        log.info("long conversation", searched=len(said) - first, stored=self.count)
        taken = index.stored_from(first) if index else []
        self._waiting = [each for each in (*taken, *self._waiting) if each[0] >= said[first].seq]
        self._index, self._sessions = None, 0
        self.messages = said[first:]
        self.refused = [seq for seq in self.refused if seq >= said[first].seq]
        self._text_bytes = sum(map(_bytes_of, self.messages))

    def take_out(self, erased: Collection[int]) -> bool:
        """Remove erased messages; return False if one of them is indexed, missing or searched now.

        A turn searches what was said before it. So the newest exchange is not indexed yet when its
        question is edited or answered again.
        """
        if not (self.is_whole and self.searching.acquire(blocking=False)):
            return not erased
        try:
            first = len(self._index) if self._index else 0
            gone = [each for each in self.messages[first:] if each.seq in erased]
            if len(gone) < len(erased):
                return False
            self.messages[first:] = [m for m in self.messages[first:] if m.seq not in erased]
            self.refused = [seq for seq in self.refused if seq not in erased]
            waiting = [each for each in self._waiting if each[0] not in erased]
            self.vectors_count -= len(self._waiting) - len(waiting)
            self.count -= len(gone)
            self._waiting, self._text_bytes = waiting, self._text_bytes - sum(map(_bytes_of, gone))
            self.length, self.vectors_length = self.count, self.vectors_count
            return True
        finally:
            self.searching.release()

    def position(self, seq: int) -> int | None:
        """Return the position of the message with this sequence, None if it is not here."""
        at = bisect_left(self.messages, seq, key=lambda message: message.seq)
        return at if at < len(self.messages) and self.messages[at].seq == seq else None

    def _take(self, entries: Sequence[tuple[int, Columns]]) -> None:
        self.append([message_of(*entry) for entry in entries])


def _bytes_of(message: Message) -> int:
    return sys.getsizeof(message.text) + _MESSAGE_OVERHEAD_BYTES
