"""Where the first sitting of some messages ends."""

from collections.abc import Sequence
from itertools import pairwise

from memory.message import Message
from memory.search.message_search import SESSION_PAUSE_S


def first_session(messages: Sequence[Message], mark: int, now: float) -> int:
    """Count the messages of the first sitting if it has ended, else return 0.

    A sitting ends with a pause, or where `/new` was said: after the message of sequence `mark`.
    """
    for at, (before, after) in enumerate(pairwise(messages), start=1):
        if after.sent_at - before.sent_at > SESSION_PAUSE_S or before.seq == mark:
            return at
    last = messages[-1]
    has_ended = last.seq <= mark or now - last.sent_at > SESSION_PAUSE_S
    return len(messages) if has_ended else 0
