"""Warm conversations: what this process has read of each, so that a turn reads only what is new.

Valid only for the (epoch, erasure) under which it was read; Redis remains the truth.
"""

import sys
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.index.hybrid import HybridIndex
from memory.indexed import SITTING_PAUSE_S, record_of
from memory.keys import Conversation
from memory.log import PackedRows
from memory.messages import Message
from memory.protocol.turns import Known, Lease, Loaded

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
    vector_stamp: str = ""
    born: int = 0
    messages: list[Message] = field(default_factory=list)
    log_length: int = -1
    vectors_length: int = -1
    sitting: int = 0
    refused: list[int] = field(default_factory=list)
    _index: HybridIndex = field(default_factory=HybridIndex)
    _sittings: int = 0
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
    def known(self) -> Known:
        """What need not be read again."""
        return Known(self.messages[-1].seq if self.messages else 0, self.vectors.newest)

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
            if row and message.sent_at - self.messages[row - 1].sent_at > SITTING_PAUSE_S:
                self._sittings += 1
            self._index.append(record_of(message, self._sittings))
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

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._warm: OrderedDict[Conversation, Warm] = OrderedDict()
        self._sizes: dict[Conversation, int] = {}
        self._bytes = 0

    def known(self, conversation: Conversation) -> Known:
        """Return what need not be read again."""
        warm = self._warm.get(conversation)
        return warm.known if warm else Known()

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
            or warm.born != loaded.notes.born
            or warm.vector_stamp != loaded.vector_stamp
            or not warm.vectors.fits(loaded.vectors)
        ):
            warm = Warm(lease.version, loaded.vector_stamp, loaded.notes.born)
        warm.append(loaded.messages)
        warm.vectors.extend(loaded.vectors)
        warm.log_length = loaded.log_length
        warm.vectors_length = loaded.vectors_length
        warm.sitting = loaded.sitting
        self.keep(lease.conversation, warm)
        return warm

    def keep(self, conversation: Conversation, warm: Warm) -> None:
        """Hold a conversation as the newest; the oldest leave when there is no room."""
        self.drop(conversation)
        self._warm[conversation] = warm
        self._sizes[conversation] = warm.nbytes
        self._bytes += warm.nbytes
        while self._bytes > self._most_bytes and len(self._warm) > 1:
            self.drop(next(iter(self._warm)))

    def drop(self, conversation: Conversation) -> None:
        """Forget what was read."""
        self._warm.pop(conversation, None)
        self._bytes -= self._sizes.pop(conversation, 0)
