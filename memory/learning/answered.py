"""Reads what was said and answered behind watermarks: a turn that failed teaches nothing.

Nor does what is said while memory is off.
"""

from collections.abc import Iterable, Sequence

from memory.message import Message
from memory.scopes.changes import NotWritten
from memory.scopes.history import version_of
from memory.scopes.log import message_of
from memory.scopes.scope_memory import ScopeMemory
from memory.store.store import Store

_PAGE = 200
_MAX_PAGES = 50
"""So many are passed over at most where nobody was answered."""


async def answered_behind(
    store: Store, here: ScopeMemory, watermarks: Iterable[int]
) -> dict[int, list[Message]]:
    """Return by watermark what follows it in a conversation, oldest first, a page at most.

    `here` is the conversation's notebook. Raise `NotWritten` when something was erased since it was
    read: a person's notebook would not refuse what rests on that.
    """
    keys = store.keys.scope(here.scope)
    found: dict[int, list[Message]] = {}
    reached = {watermark: watermark for watermark in watermarks}
    for _ in range(_MAX_PAGES):
        asked = [("XRANGE", keys.log, f"({seq}-0", "+", "COUNT", _PAGE) for seq in reached.values()]
        # Behind the messages: what is not off by then was not off when they were said.
        switch = ("HMGET", keys.meta, "epoch", "erasure", "off_at")
        *pages, meta = await store.client.pipeline([*asked, switch])
        if version_of(meta) != here.version:
            raise NotWritten(here.scope.tag)
        for watermark, page in zip(tuple(reached), pages, strict=True):
            said = [message_of(entry, fields) for entry, fields in page]
            before_off = [each for each in said if meta[2] is None or each.seq <= int(meta[2])]
            found[watermark] = _answered(before_off)
            if found[watermark] or len(before_off) < _PAGE:
                del reached[watermark]
            else:
                reached[watermark] = _last_whole(said)
        if not reached:
            break
    return found


def _answered(messages: Sequence[Message]) -> list[Message]:
    answered = {message.exchange for message in messages if message.role == "assistant"}
    return [message for message in messages if message.exchange in answered]


def _last_whole(messages: Sequence[Message]) -> int:
    """Return the sequence before the last exchange, whose answer the next page may hold."""
    last = messages[-1]
    return max((each.seq for each in messages if each.exchange != last.exchange), default=last.seq)
