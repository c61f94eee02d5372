"""Packs recalled messages into a number of tokens: which are shown, how long, in which order.

The best messages are shown long, the others as short passages around the words of the question, so
that many fit. The memory section of a prompt and `search_memory` both use it.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import tzinfo

from bot.prompt.sections import memory_line
from memory.behaviors.context import AgentContext
from memory.message import Message
from memory.search.asked import QUESTION_MARKS, asks_for_all
from memory.search.excerpt import relevant_excerpt
from memory.search.message_search import SearchResult
from memory.search.words import asked_terms, words_of
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import harmless

_LONG = 3
"""So many of the best messages are shown long. For a list all are short: more of them fit."""

_LONG_TOKENS = 200
_SHORT_TOKENS = 30

_MIN_WORDS = 4
"""A text with fewer content words cannot be understood without what was said before it."""

_ALIKE = 0.9
"""Texts that share more than this share of their words say the same."""

_MAX_MISSES = 10
"""Packing ends after so many messages that did not fit."""


class RecallPacker:
    """Packs messages as dated lines; `zone` is the time zone of the dates.

    With `is_numbered`, each line has the message's number, so that a tool can be asked about it.
    """

    def __init__(self, counter: TokenCounter, zone: tzinfo, *, is_numbered: bool = False) -> None:
        self._counter = counter
        self._zone = zone
        self._is_numbered = is_numbered

    def pack(
        self,
        context: AgentContext,
        found: Sequence[SearchResult],
        query: str,
        limit: int,
        exclude: Collection[int] = (),
    ) -> dict[int, str]:
        """Return the lines of `ranked` in the order of time."""
        return dict(sorted(self.ranked(context, found, query, limit, exclude).items()))

    def ranked(
        self,
        context: AgentContext,
        found: Sequence[SearchResult],
        query: str,
        limit: int,
        exclude: Collection[int] = (),
    ) -> dict[int, str]:
        """Return lines of at most `limit` tokens by sequence, the best first.

        `found` is sorted, the best first. Messages with a sequence in `exclude` are left out, and
        so is what repeats a better one.
        """
        longs = 0 if asks_for_all(query) else _LONG
        left, misses, lines = limit, 0, dict[int, str]()
        for message in self._unrepeated(found, exclude):
            tokens = min(_LONG_TOKENS if len(lines) < longs else _SHORT_TOKENS, limit // 2)
            excerpt = relevant_excerpt(harmless(message.text), query, tokens, self._counter.count)
            line = memory_line(message, excerpt, context.now, self._zone, context.speakers)
            if self._is_numbered:
                line = f"#{message.seq} {line}"
            cost = self._counter.count(f"{line}\n")
            if cost <= left:
                left -= cost
                lines[message.seq] = line
            elif (misses := misses + 1) == _MAX_MISSES:
                break
        return lines

    def _unrepeated(
        self, found: Sequence[SearchResult], exclude: Collection[int]
    ) -> Iterator[Message]:
        """Yield each message to show once, without those that repeat an earlier one."""
        seen = set(exclude)
        told: list[frozenset[str]] = []
        for message in _best_first(found):
            words = frozenset(words_of(message.text))
            if message.seq in seen or not words or any(_is_alike(words, each) for each in told):
                continue
            seen.add(message.seq)
            told.append(words)
            yield message


def _best_first(found: Sequence[SearchResult]) -> Iterator[Message]:
    """Yield the hits, then the rest of the exchanges of those hits that cannot stand alone."""
    yield from (result.hit for result in found)
    for result in found:
        if not _stands_alone(result.hit.text):
            yield from result.messages


def _stands_alone(text: str) -> bool:
    """Return whether a text is no question and says something by itself."""
    asks = text.rstrip().endswith(QUESTION_MARKS)
    return not asks and len(asked_terms(words_of(text), {})) >= _MIN_WORDS


def _is_alike(words: frozenset[str], others: frozenset[str]) -> bool:
    return len(words & others) > _ALIKE * len(words | others)
