"""Warm conversations: what this process has read of each, so that a turn reads only what is new.

Valid only for the (epoch, erasure) under which it was read; Redis remains the truth.
"""

import sys
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.message import Message
from memory.queue.open_turn import Lease
from memory.scopes.delta import Cursor, Loaded
from memory.scopes.log import PackedRows
from memory.search.hybrid import HybridIndex
from memory.search.message_search import SESSION_PAUSE_S, record_of
from memory.store.keys import Scope

_MESSAGE_OVERHEAD_BYTES = 400
_FRESH = 10
"""Messages that may wait for their vectors after a few quick replies."""


@dataclass(slots=True)
class Warm:
    """One conversation as read so far: its newest messages without gaps, oldest first.

    `log_length` and `vectors_length` are what is stored; -1 before anything was read. What has been
    read is indexed only when it is searched; row n of the index is message n. `born` tells it from
    an earlier life of the conversation, which expired. `refused` are sequences of refused words.
    """

    version: tuple[str, str]
    vector_fingerprint: str = ""
    generation: int = 0
    messages: list[Message] = field(default_factory=list)
    log_length: int = -1
    vectors_length: int = -1
    session: int = 0
    refused: list[int] = field(default_factory=list)
    _index: HybridIndex = field(default_factory=HybridIndex)
    _sessions: int = 0
    vectors: PackedRows = field(default_factory=PackedRows)
    _text_bytes: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the stored log and vectors is missing here."""
        return len(self.messages) == self.log_length and self.vectors.count == self.vectors_length

    @property
    def is_embedded(self) -> bool:
        """Whether all but the freshest messages, or a tenth, have vectors to be compared with."""
        missing = len(self.messages) - len(self.refused) - self.vectors.count
        return missing <= max(_FRESH, len(self.messages) // 10)

    @property
    def known(self) -> Cursor:
        """What need not be read again."""
        return Cursor(self.messages[-1].seq if self.messages else 0, self.vectors.newest)

    @property
    def unindexed(self) -> int:
        """How many messages and vectors the next search has to index first."""
        return len(self.messages) - len(self._index) + len(self.vectors)

    @property
    def nbytes(self) -> int:
        """Roughly the bytes held."""
        return self._text_bytes + self.vectors.nbytes + self._index.nbytes

    def append(self, messages: Sequence[Message]) -> None:
        """Append messages of ascending sequences; what is held already is passed over."""
        newest = self.known.seq
        newer = [message for message in messages if message.seq > newest]
        self.messages.extend(newer)
        self.refused.extend(message.seq for message in newer if message.is_refused)
        self._text_bytes += sum(sys.getsizeof(m.text) + _MESSAGE_OVERHEAD_BYTES for m in newer)

    def indexed(self) -> HybridIndex:
        """Index what is new, at about 0.1 ms a message, and return the index."""
        for row in range(len(self._index), len(self.messages)):
            message = self.messages[row]
            if row and message.sent_at - self.messages[row - 1].sent_at > SESSION_PAUSE_S:
                self._sessions += 1
            self._index.append(record_of(message, self._sessions))
        for seq, vector in self.vectors.unpacked():
            at = self.position(seq)
            if at is not None:
                self._index.put_vector(at, vector)
        self.vectors.clear()
        return self._index

    def position(self, seq: int) -> int | None:
        """Return where the message of this sequence stands, nothing when it is not held."""
        at = bisect_left(self.messages, seq, key=lambda message: message.seq)
        held = at < len(self.messages) and self.messages[at].seq == seq
        return at if held else None


class ConversationCache:
    """The most recently used conversations, up to a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._warm: OrderedDict[Scope, Warm] = OrderedDict()
        self._sizes: dict[Scope, int] = {}
        self._bytes = 0

    def known(self, conversation: Scope) -> Cursor:
        """Return what need not be read again."""
        warm = self._warm.get(conversation)
        return warm.known if warm else Cursor()

    def merge(self, lease: Lease, loaded: Loaded, tail: int) -> Warm:
        """Return the conversation with what was loaded joined on.

        `tail` is how many entries the read was limited to: a full read may have left a gap behind
        it, so what was known before it is dropped.
        """
        warm = self._warm.get(lease.conversation)
        gap = len(loaded.messages) >= tail or len(loaded.vectors) >= tail
        if (
            warm is None
            or gap
            or warm.version != lease.version
            or warm.generation != loaded.notes.generation
            or warm.vector_fingerprint != loaded.vector_fingerprint
            or not warm.vectors.fits(loaded.vectors)
        ):
            warm = Warm(lease.version, loaded.vector_fingerprint, loaded.notes.generation)
        warm.append(loaded.messages)
        warm.vectors.extend(loaded.vectors)
        warm.log_length = loaded.log_length
        warm.vectors_length = loaded.vectors_length
        warm.session = loaded.session
        self.keep(lease.conversation, warm)
        return warm

    def keep(self, conversation: Scope, warm: Warm) -> None:
        """Hold a conversation as the newest; the oldest leave when there is no room."""
        self.drop(conversation)
        self._warm[conversation] = warm
        self._sizes[conversation] = warm.nbytes
        self._bytes += warm.nbytes
        while self._bytes > self._max_bytes and len(self._warm) > 1:
            self.drop(next(iter(self._warm)))

    def drop(self, conversation: Scope) -> None:
        """Forget what was read."""
        self._warm.pop(conversation, None)
        self._bytes -= self._sizes.pop(conversation, 0)
