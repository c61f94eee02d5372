"""Talk off the record: no memory is read or written, and the words are erased at the end.

The messages of such a session are in a stream of their own, which Redis deletes when the time is
over, even if no process runs. Nothing that learns, searches or exports knows this stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import time

from memory.message import Message
from memory.queue.mailbox import Entry, Mailbox
from memory.scopes.history import ChatHistory, HistoryParts
from memory.scopes.log import message_of, paired, seq_of
from memory.scopes.scope_memory import ScopeMemory
from memory.store.commands import Reply
from memory.store.keys import Scope
from memory.store.store import Store

_PAGE = 100


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


class OffRecordSessions:
    """Begins and ends sessions off the record."""

    def __init__(self, store: Store, mailbox: Mailbox) -> None:
        self._store = store
        self._mailbox = mailbox

    async def begin(self, conversation: Scope, since: float, until: float, end: Entry) -> None:
        """Begin a session, or change when the open one ends; times are in Unix seconds.

        `end` is the command that is put into the mailbox when the time is over. The index of ends
        is written first, because an entry without a session does no harm.
        """
        store, keys = self._store, self._store.keys
        request = {"since": int(since * 1000), "until": int(until * 1000), "ttl_s": store.ttl_s}
        script = store.call("begin_off_record", conversation, request, end.to_member())
        await store.client.pipeline([("ZADD", keys.off_record, until, conversation.tag), script])

    async def is_open(self, conversation: Scope) -> bool:
        """Return whether a session is open now."""
        meta = self._store.keys.scope(conversation).meta
        found = await self._store.client.call("HGET", meta, "off_record")
        return found is not None and int(found.split(b"|")[1]) > time() * 1000

    async def end(self, conversation: Scope, update_id: int, *, is_due: bool) -> int | None:
        """Erase the words of the session; return how many messages it had, None without a session.

        If `is_due`, only a session whose time is over is ended. `update_id` is that of the command.
        A repeat with the same id returns the same number.
        """
        request = {"by": str(update_id), "is_due": is_due}
        messages = int(await self._store.run("end_off_record", conversation, request))
        if messages < 0:
            return None
        await self._store.tell_erased(conversation)
        return messages

    async def end_due(self) -> None:
        """Put the command that ends a session into the mailbox of each whose time is over."""
        client, keys = self._store.client, self._store.keys
        due = await client.call(
            *("ZRANGEBYSCORE", keys.off_record, "-inf", time()), *("WITHSCORES", "LIMIT", 0, _PAGE)
        )
        for tag, noted_end in due:
            conversation = Scope(tag.decode())
            found = await client.call("HGET", keys.scope(conversation).meta, "off_record")
            if found:
                _, until, end = found.split(b"|", 2)
                if int(until) > time() * 1000:  # its end was put off
                    await client.call("ZADD", keys.off_record, int(until) / 1000, tag)
                    continue
                if end:  # it is gone once it has ended the session
                    await self._mailbox.put(conversation, Entry.of_member(end))
            # Not if a session has begun meanwhile: then this is the note of its end.
            request = {"member": tag.decode(), "score": repr(noted_end)}
            await self._store.scripts["take_due"]([keys.off_record], request)
