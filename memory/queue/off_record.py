"""Talk off the record: no memory is read or written, and the words are erased at the end.

The messages of such a session are in a stream of their own, which Redis deletes when the time is
over, even if no process runs. Nothing that learns, searches or exports knows this stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import time

from memory.message import Message
from memory.scopes.history import ChatHistory, HistoryParts
from memory.scopes.log import message_of, paired, seq_of
from memory.scopes.scope_memory import ScopeMemory
from memory.store.commands import Reply
from memory.store.keys import Scope
from memory.store.store import Store


@dataclass(frozen=True, slots=True)
class OffRecord:
    """A session off the record. Its times stay stored: its messages may be answered later."""

    since: float  # Unix seconds
    until: float  # it ends before this time
    said: tuple[Message, ...] = ()  # its newest messages

    @classmethod
    def of(cls, head: Sequence[int], said: Sequence[tuple[bytes, Sequence[Reply]]]) -> "OffRecord":
        """Read the answer of the script `begin`."""
        messages = tuple(message_of(seq_of(entry_id), paired(fields)) for entry_id, fields in said)
        return cls(head[0] / 1000, head[1] / 1000, messages)

    def covers(self, at: float) -> bool:
        """Return whether a message of this time belongs to the session."""
        return self.since <= at < self.until

    def history(self, parts: HistoryParts, conversation: Scope) -> ChatHistory:
        """Return the session as the whole history of its conversation; nothing may be written."""
        here = ScopeMemory(conversation)
        here.messages.append(self.said)
        here.messages.length, here.messages.vectors_length = len(self.said), 0
        return ChatHistory(parts, here, here.messages)


async def is_off_record(store: Store, conversation: Scope) -> bool:
    """Return whether a session is open now; raise `StoreError`."""
    found = await store.client.call("HGET", store.keys.scope(conversation).meta, "off_record")
    return found is not None and int(found.split(b"|")[1]) > time() * 1000
