"""The messages of a conversation, as far as this process has read them."""

import sys
import threading
from bisect import bisect_left
from collections.abc import Sequence
from datetime import tzinfo

from memory.message import Message
from memory.scopes.delta import Columns
from memory.scopes.log import message_of
from memory.scopes.stream import EmbeddedStream, KindIndex
from memory.search.message_search import SESSION_PAUSE_S, record_of

_MESSAGE_OVERHEAD_BYTES = 400
_INDEXED_AT_ONCE = 1_000
_FRESH = 10
"""So many messages may have no vector yet, because embedding follows the replies."""


class MessageStream(EmbeddedStream):
    """The newest messages without a gap, oldest first; row n of the index is message n.

    Messages up to `session` belong to earlier sessions. `refused` are sequences of messages that
    the model's server refused. A search holds `searching`: other topics may search the same stream,
    and an index serves one thread at a time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []
        self.refused: list[int] = []
        self.session = 0
        self.searching = threading.Lock()
        self._index = KindIndex()
        self._sessions = 0

    @property
    def is_embedded(self) -> bool:
        """Whether all messages have vectors, except a tenth of them or the ten newest."""
        missing = len(self.messages) - len(self.refused) - self.vectors.count
        return missing <= max(_FRESH, len(self.messages) // 10)

    @property
    def unindexed(self) -> int:
        """How many messages and vectors the next search has to index first."""
        return len(self.messages) - len(self._index.ids) + len(self.vectors)

    def append(self, messages: Sequence[Message]) -> None:
        """Append messages in the order of their sequences, except those that are here already."""
        for message in messages:
            if message.seq > self.newest:
                self._text_bytes += self._keep(message)
                self.newest = message.seq
                self.count += 1

    def indexed(self, zone: tzinfo) -> KindIndex:
        """Index new messages by the days of `zone`, in about 0.05 ms each; return the index."""
        while len(self._index.ids) < len(self.messages):
            first = len(self._index.ids)
            said, records = self.messages[first : first + _INDEXED_AT_ONCE], []
            earlier = self.messages[first - 1 if first else 0]
            for message in said:
                self._sessions += message.sent_at - earlier.sent_at > SESSION_PAUSE_S
                records.append(record_of(message, self._sessions, zone))
                earlier = message
            self._index.extend([message.seq for message in said], records)
        for seqs, vectors in self.vectors.taken():
            self._index.put_vectors(seqs, vectors)
        return self._index

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
        return sys.getsizeof(message.text) + _MESSAGE_OVERHEAD_BYTES

    def _indexes(self) -> Sequence[KindIndex]:
        return (self._index,)
