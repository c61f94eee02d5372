"""Reads the answered exchanges after each watermark.

Nothing is learned from a turn without an answer, or from what was said while memory was off.
"""

from collections.abc import Iterable, Sequence

from memory.message import Message
from memory.scopes.changes import NotWritten
from memory.scopes.log import message_of, version_of
from memory.scopes.scope_memory import ScopeMemory
from memory.store.store import Store

_PAGE = 200
_MAX_PAGES = 50
"""At most this many pages without an answered exchange are skipped."""


async def answered_after(
    store: Store, here: ScopeMemory, watermarks: Iterable[int]
) -> dict[int, list[Message]]:
    """Return by watermark the answered messages after it, oldest first, at most one page each.

    Messages that must not be found by searches are left out: their person had a fact deleted that
    rests on them. `here` is the conversation's scope memory. Raise `NotWritten` if something was
    erased since it was read, because the scope of a person would accept what rests on erased
    messages.
    """
    keys = store.keys.scope(here.scope)
    found: dict[int, list[Message]] = {}
    reached = {watermark: watermark for watermark in watermarks}
    for _ in range(_MAX_PAGES):
        asked = [("XRANGE", keys.log, f"({seq}-0", "+", "COUNT", _PAGE) for seq in reached.values()]
        # Read after the messages: if memory is on then, it was on when they were said.
        switch = ("HMGET", keys.meta, "epoch", "erasure", "off_at")
        *pages, meta = await store.client.pipeline([*asked, switch])
        if version_of(meta) != here.version:
            raise NotWritten(here.scope.tag)
        for watermark, page in zip(tuple(reached), pages, strict=True):
            messages = [message_of(entry, fields) for entry, fields in page]
            before_off = [each for each in messages if meta[2] is None or each.seq <= int(meta[2])]
            answered = _answered(before_off)
            found[watermark] = [each for each in answered if each.seq not in here.hidden]
            if found[watermark] or len(before_off) < _PAGE:
                del reached[watermark]
            else:
                reached[watermark] = _before_last_exchange(messages)
        if not reached:
            break
    return found


def _answered(messages: Sequence[Message]) -> list[Message]:
    answered = {message.exchange for message in messages if message.role == "assistant"}
    return [message for message in messages if message.exchange in answered]


def _before_last_exchange(messages: Sequence[Message]) -> int:
    """Return the sequence before the last exchange, whose answer may be on the next page."""
    last = messages[-1]
    return max((each.seq for each in messages if each.exchange != last.exchange), default=last.seq)
