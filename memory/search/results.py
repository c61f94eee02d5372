"""What a search over a conversation brings back.

Values only; finding them is `history`'s business, showing them the prompt's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from memory.message import Message

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One recalled exchange: the message that was hit, with its question or answer, oldest first.

    `seq` is the hit's, one of `messages`; `score` orders recollections, higher is nearer. It says
    why: what words (`lexical`) and meaning (`dense`) had to say, and whether a neighbour lent the
    words.
    """

    messages: tuple[Message, ...]
    score: float
    seq: int
    lexical: float = 0.0
    dense: float = 0.0
    is_boosted: bool = False


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Which messages may be hit: said from `since` until before `until` (Unix seconds), by whom.

    `speaker` is a part of a name in any case; empty for everybody.
    """

    since: float = -inf
    until: float = inf
    speaker: str = ""

    def mask(self, messages: Sequence[Message]) -> Flags:
        """Return `(len(messages),)` bool."""
        if self == EVERYTHING:
            return np.ones(len(messages), np.bool_)
        speaker = self.speaker.casefold()
        return np.fromiter(
            (
                self.since <= m.sent_at < self.until
                and speaker in (m.sender_name or m.role).casefold()
                for m in messages
            ),
            np.bool_,
            len(messages),
        )


EVERYTHING = SearchFilter()
