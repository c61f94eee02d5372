"""Reads the answered exchanges after each watermark.

Nothing is learned from a turn without an answer, or from what was said while memory was off.
"""

from collections.abc import Iterable, Sequence

from memory.learning.progress import Progress
from memory.message import Message
from memory.scopes.changes import NotWritten
from memory.scopes.log import message_of, seq_of, version_of
from memory.store.store import Store

_PAGE = 200
_MAX_PAGES = 50
"""At most this many pages without an answered exchange are skipped."""


async def answered_after(
    store: Store, progress: Progress, watermarks: Iterable[int]
) -> dict[int, list[Message]]:
    """Return by watermark the answered messages after it, oldest first, at most one page each.

    Only messages that the round has not read at its beginning are read from the store. Messages
    that must not be found by searches are left out: their person had a fact deleted that rests on
    them. Raise `NotWritten` if something was erased since the conversation was read, because the
    scope of a person would accept what rests on erased messages.
    """
    here = progress.here
    keys = store.keys.scope(here.scope)
    found: dict[int, list[Message]] = {}
    reached: dict[int, int] = {}
    for watermark in watermarks:
        said = progress.said_after(watermark)
        if said is None:
            reached[watermark] = watermark
        else:
            found[watermark] = _learnable(said, progress)
    for _ in range(_MAX_PAGES):
        if not reached:
            break
        asked = [("XRANGE", keys.log, f"({seq}-0", "+", "COUNT", _PAGE) for seq in reached.values()]
        # Read after the messages: if memory is on then, it was on when they were said.
        switch = ("HMGET", keys.meta, "epoch", "erasure", "off_at")
        *pages, meta = await store.client.pipeline([*asked, switch])
        if version_of(meta) != here.version:
            raise NotWritten(here.scope.tag)
        for watermark, page in zip(tuple(reached), pages, strict=True):
            messages = [message_of(seq_of(entry), fields) for entry, fields in page]
            before_off = [each for each in messages if meta[2] is None or each.seq <= int(meta[2])]
            found[watermark] = _learnable(before_off, progress)
            if found[watermark] or len(before_off) < _PAGE:
                del reached[watermark]
            else:
                reached[watermark] = _before_last_exchange(messages)
    return found


def _learnable(messages: Sequence[Message], progress: Progress) -> list[Message]:
    """Return the messages of answered exchanges, without those that were hidden."""
    answered = {message.exchange for message in messages if message.role == "assistant"}
    hidden = progress.here.hidden
    return [each for each in messages if each.exchange in answered and each.seq not in hidden]


def _before_last_exchange(messages: Sequence[Message]) -> int:
    """Return the sequence before the last exchange, whose answer may be on the next page."""
    last = messages[-1]
    return max((each.seq for each in messages if each.exchange != last.exchange), default=last.seq)
