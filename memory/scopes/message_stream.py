"""The messages of a conversation, as far as this process has read them."""

import sys
import threading
from bisect import bisect_left
from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

import structlog

from memory.message import Message
from memory.scopes.log import Columns, message_of
from memory.scopes.stream import EmbeddedStream
from memory.search.embeddings import index_class
from memory.search.message_search import SESSION_PAUSE_S, IndexRecord, record_of

if TYPE_CHECKING:
    from memory.search.hybrid import HybridIndex

log = structlog.get_logger(__name__)

_MESSAGE_OVERHEAD_BYTES = 400
_INDEXED_AT_ONCE = 2_000
_INDEXED_CHARS_AT_ONCE = 250_000
"""The numbers of the words of so many messages, and of so many characters, are in memory while
indexing."""
_USUAL_CHARS = 200
_MIN_KEPT = 20
"""So many newest messages are searched whatever memory they take."""
_SHORTENED_SHARE = 2
"""A conversation that takes too much memory keeps one part of that in so many, so that it may grow
again."""
_FRESH = 10
"""So many messages may have no vector yet, because embedding follows the replies."""


class MessageStream(EmbeddedStream):
    """The newest messages without a gap, oldest first; row n of the index is message n.

    Messages up to `session` belong to earlier sessions. `refused` are sequences of messages that
    the model's server refused. A search holds `searching`: other topics may search the same stream,
    and an index serves one thread at a time. If all of it takes more than `max_bytes`, the oldest
    messages are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.max_bytes = sys.maxsize
        self.messages: list[Message] = []
        self.refused: list[int] = []
        self.session = 0
        self.searching = threading.Lock()
        self._index: HybridIndex | None = None
        self._sessions = 0

    @property
    def nbytes(self) -> int:
        """Roughly the bytes in memory."""
        index = self._index  # a search in a thread may shorten the stream
        return super().nbytes + (index.nbytes if index else 0)

    @property
    def is_embedded(self) -> bool:
        """Whether all messages have vectors, except a tenth of them or the ten newest."""
        missing = self.count - len(self.refused) - self.vectors.count
        return missing <= max(_FRESH, len(self.messages) // 10)

    @property
    def unindexed(self) -> int:
        """How much the next search has to index first: about in messages of 200 characters."""
        index = self._index
        done = len(index) if index and self.nbytes <= self.max_bytes else 0
        new = self.messages[done:]
        return len(new) + sum(len(each.text) for each in new) // _USUAL_CHARS + len(self.vectors)

    def append(self, messages: Sequence[Message]) -> None:
        """Append messages in the order of their sequences, except those that are here already."""
        for message in messages:
            if message.seq > self.newest:
                self._text_bytes += self._keep(message)
                self.newest = message.seq
                self.count += 1

    def indexed(self, zone: tzinfo) -> "HybridIndex":
        """Index new messages by the days of `zone`, in about 0.05 ms each; return the index."""
        index = self._index = self._index or index_class()()
        while len(index) < len(self.messages):
            first, chars, records = len(index), 0, list[IndexRecord]()
            said = self.messages[first : first + _INDEXED_AT_ONCE]
            earlier = self.messages[first - 1 if first else 0]
            for message in said:
                self._sessions += message.sent_at - earlier.sent_at > SESSION_PAUSE_S
                records.append(record_of(message, self._sessions, zone))
                earlier = message
                chars += len(message.text)
                if chars > _INDEXED_CHARS_AT_ONCE:
                    break
            index.extend(records, [message.seq for message in said[: len(records)]])
            self.shorten()
            index = self._index = self._index or index_class()()
        for seqs, vectors in self.vectors.taken():
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
        self.vectors.wait_again(taken, said[first].seq)
        self._index, self._sessions = None, 0
        self.messages = said[first:]
        self.refused = [seq for seq in self.refused if seq >= said[first].seq]
        self._text_bytes = sum(map(_bytes_of, self.messages))

    def position(self, seq: int) -> int | None:
        """Return the position of the message with this sequence, None if it is not here."""
        at = bisect_left(self.messages, seq, key=lambda message: message.seq)
        return at if at < len(self.messages) and self.messages[at].seq == seq else None

    def _take(self, entry_id: int, columns: Columns) -> int:
        return self._keep(message_of(entry_id, columns))

    def _keep(self, message: Message) -> int:
        self.messages.append(message)
        if message.is_refused:
            self.refused.append(message.seq)
        return _bytes_of(message)


def _bytes_of(message: Message) -> int:
    return sys.getsizeof(message.text) + _MESSAGE_OVERHEAD_BYTES
