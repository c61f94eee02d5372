"""Packs recalled messages into a number of tokens: which are shown, how long, in which order.

The best messages are shown long, the others as short passages around the words of the question, so
that many fit. The memory section of a prompt and `search_memory` both use it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, tzinfo
from typing import Final

from memory.behaviors.context import AgentContext
from memory.message import Message
from memory.search.excerpt import relevant_excerpt
from memory.search.message_search import Later, SearchResult
from memory.search.question import asks_for_all, is_question
from memory.search.words import asked_terms, content_forms, words_of
from memory.text.message_lines import calendar_day, dated, memory_line
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import escaped, one_line

_MAX_MISSES = 10
"""Packing ends after so many messages that did not fit."""

_MAX_READ_WORDS = 30
"""The first words of a text decide whether it says something by itself."""

_SAME_DATE = "-"
"""Begins a line in place of its date if that is the date of the line above."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Every constant of the packing in one value, so that a laboratory can vary each."""

    long: int = 3  # so many of the best messages are shown long
    long_in_list: int = 0  # the same if the question asks for a list: more short ones fit
    long_tokens: int = 200  # tokens of a long message
    short_tokens: int = 30  # tokens of any other
    min_words: int = 4  # a text with fewer content words is not understood without its exchange
    alike: float = 0.9  # texts that share more than this share of their words say the same


PACKING: Final = Packing()
"""The packing of the product."""


@dataclass(frozen=True, slots=True)
class RecalledLine:
    """One recalled message: its date, as "[12 March 2025]", and its line with "-" for the date."""

    date: str
    text: str


def with_dates(lines: Mapping[int, RecalledLine]) -> dict[int, str]:
    """Return whole lines by sequence in the order of time, each date once, before its first line.

    Lines of one date stand together even if the clock has gone back.
    """
    dates: dict[str, list[int]] = {}
    for seq, line in sorted(lines.items()):
        dates.setdefault(line.date, []).append(seq)
    dated_lines = {seq: lines[seq].text for seqs in dates.values() for seq in seqs}
    for date, (first, *_) in dates.items():
        dated_lines[first] = date + dated_lines[first].removeprefix(_SAME_DATE)
    return dated_lines


def _mark(later: Later, zone: tzinfo) -> str:
    """Return the words behind a statement that does not hold any more."""
    until = f" [until {calendar_day(datetime.fromtimestamp(later.ended_at, zone).date())}"
    return f"{until}, then: {escaped(one_line(later.text))}]" if later.text else f"{until}]"


@dataclass(slots=True, eq=False)
class RecallPacker:
    """Packs messages as dated lines; `zone` is the time zone of the dates.

    With `is_numbered`, each line has the message's number, so that a tool can be asked about it.
    """

    counter: TokenCounter
    zone: tzinfo
    _: KW_ONLY
    is_numbered: bool = False
    packing: Packing = PACKING

    def pack(
        self,
        context: AgentContext,
        found: Sequence[SearchResult],
        query: str,
        limit: int,
        exclude: Collection[int] = (),
    ) -> dict[int, str]:
        """Return the lines of `ranked` with their dates, in the order of time."""
        return with_dates(self.ranked(context, found, query, limit, exclude))

    def ranked(
        self,
        context: AgentContext,
        found: Sequence[SearchResult],
        query: str,
        limit: int,
        exclude: Collection[int] = (),
    ) -> dict[int, RecalledLine]:
        """Return lines by sequence, the best first, with dates of at most `limit` tokens.

        `found` is sorted, the best first. Messages with a sequence in `exclude` are left out, and
        so is what repeats a better one.
        """
        packing = self.packing
        longs = packing.long_in_list if asks_for_all(query) else packing.long
        left, misses, lines, dates = limit, 0, dict[int, RecalledLine](), set[str]()
        later = {seq: each for result in found for seq, each in result.later.items()}
        for message in self._unrepeated(found, query, exclude):
            tokens = packing.long_tokens if len(lines) < longs else packing.short_tokens
            line, cost = self._line(context, message, query, min(tokens, limit // 2))
            if message.seq in later:
                mark = "".join(_mark(each, self.zone) for each in later[message.seq])
                line = RecalledLine(line.date, f"{line.text}{mark}")
                cost += self.counter.count(mark)
            if line.date not in dates:
                cost += self.counter.count(line.date)
            if cost <= left:
                dates.add(line.date)
                left -= cost
                lines[message.seq] = line
            elif (misses := misses + 1) == _MAX_MISSES:
                break
        return lines

    def _line(
        self, context: AgentContext, message: Message, query: str, tokens: int
    ) -> tuple[RecalledLine, int]:
        """Return the line of a message, whose words get this many tokens, and its own tokens."""
        excerpt = relevant_excerpt(escaped(message.text), query, tokens, self.counter.count)
        number = f"#{message.seq} " if self.is_numbered else ""
        line = memory_line(message, excerpt, self.zone, context.speakers)
        text = f"{_SAME_DATE} {number}{line}"
        date = f"[{dated(message.sent_at, context.now, self.zone)}]"
        return RecalledLine(date, text), self.counter.count(f"{text}\n")

    def _unrepeated(
        self, found: Sequence[SearchResult], query: str, exclude: Collection[int]
    ) -> Iterator[Message]:
        """Yield each message to show once.

        What repeats an earlier one is left out, and so is a short answer to what was no question,
        if it has no word of the query.
        """
        seen = set(exclude)
        told: list[frozenset[str]] = []
        asked = content_forms(query)
        replies = {
            each.seq
            for result in found
            if any(each.role == "user" and is_question(each.text) for each in result.messages)
            for each in result.messages
        }
        for message in self._best_first(found):
            words = frozenset(words_of(message.text))
            if message.seq in seen or not words or any(self._is_alike(words, t) for t in told):
                continue
            is_reply = message.role == "user" or message.seq in replies
            says_something = is_reply or self._says_enough(message.text)
            if not says_something and asked.isdisjoint(content_forms(message.text)):
                continue
            seen.add(message.seq)
            told.append(words)
            yield message

    def _best_first(self, found: Sequence[SearchResult]) -> Iterator[Message]:
        """Yield the hits, then the rest of the exchanges of those hits that cannot stand alone."""
        yield from (result.hit for result in found)
        for result in found:
            if is_question(result.hit.text) or not self._says_enough(result.hit.text):
                yield from result.messages

    def _says_enough(self, text: str) -> bool:
        """Return whether the beginning of a text has enough content words."""
        beginning = words_of(text)[:_MAX_READ_WORDS]
        return len(asked_terms(beginning, {})) >= self.packing.min_words

    def _is_alike(self, words: frozenset[str], others: frozenset[str]) -> bool:
        fewer, more = sorted((len(words), len(others)))
        if fewer <= self.packing.alike * more:  # most texts, and this is cheap to see
            return False
        return len(words & others) > self.packing.alike * len(words | others)
