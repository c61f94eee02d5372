"""Begins and ends sessions off the record; in between the turn protocol keeps their words apart."""

from time import time

from memory.queue.mailbox import Entry, Mailbox
from memory.store.keys import Scope
from memory.store.store import Store

_PAGE = 100


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
