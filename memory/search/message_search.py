"""What search knows of messages: what is indexed, what may be found, and what is found.

Values only. The search itself runs in `memory.scopes.history`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import inf
from typing import NamedTuple

from memory.message import Message

RECIPE = "speaker words"
"""Part of the embedding fingerprint: with another recipe, messages are embedded again."""

SESSION_PAUSE_S = 3600  # a silence of more than this many seconds ends a session


class IndexRecord(NamedTuple):
    """What is indexed of one record of a session, which stand together; `text` has the speaker.

    The words of `said_on` are indexed with the text, in the language of the text. It is a tuple and
    not a dataclass, because a cold start makes one of each message, and tuples are made faster.
    """

    text: str
    session: int
    by_assistant: bool = False
    said_on: date | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One record that was found: its row, its score, and what each retriever added to it."""

    row: int
    score: float = 0.0
    lexical: float = 0.0
    dense: float = 0.0
    is_boosted: bool = False  # words of its neighbors count more than its own


@dataclass(frozen=True, slots=True)
class Later:
    """When a statement stopped being true (Unix seconds), and the fact that came instead."""

    ended_at: float
    text: str = ""
    fact_id: int = 0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One message that was found, and the exchange that it belongs to, oldest first.

    `seq`: the sequence of the hit, which is one of `messages`. `score`: higher is better.
    `lexical` and `dense`: what each retriever added to the score. `is_boosted`: words of
    neighboring messages count more than its own. By sequence, `later` says what came after
    statements that do not hold any more, and `repeated_by` has the ids of the facts that say what a
    message says. Both are empty unless facts were asked (`ChatHistory.with_facts`).
    """

    messages: tuple[Message, ...]
    score: float
    seq: int
    lexical: float = 0.0
    dense: float = 0.0
    is_boosted: bool = False
    later: Mapping[int, Sequence[Later]] = field(default_factory=dict)
    repeated_by: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @property
    def hit(self) -> Message:
        """The message that was found."""
        return next(message for message in self.messages if message.seq == self.seq)


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Which messages may be found: sent from `since` until before `until` (Unix seconds).

    `speaker`: part of the sender's name, in any case; "" for everybody. `is_meant`, if given, has
    to be true as well.
    """

    since: float = -inf
    until: float = inf
    speaker: str = ""
    is_meant: Callable[[Message], object] | None = None


EVERYTHING = SearchFilter()  # the filter that lets every message be found
