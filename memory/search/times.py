"""What records have that some questions ask for: a day, a time or number, a summary."""

from collections.abc import Sequence
from datetime import date

import numpy as np

from memory.search.arrays import Flags, Floats, GrowingArray
from memory.search.lexical import LexicalIndex
from memory.search.question import NamedDays, Period, asks_for_summary, asks_when, named_days
from memory.search.relative_days import anchored, last_months, names_a_distance, relative_periods
from memory.search.weights import Weights


class Times:
    """By position: the day of a record, whether it tells a time or a number, who wrote it."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._days = GrowingArray(np.int32)
        self._tells_time = GrowingArray(np.bool_)
        self._by_assistant = GrowingArray(np.bool_)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._days.nbytes + self._tells_time.nbytes + self._by_assistant.nbytes

    @property
    def by_assistant(self) -> Flags:
        """Which records the assistant wrote, `(records,)`."""
        return self._by_assistant.view

    def extend(self, tell_times: Flags, days: Sequence[date | None], by_assistant: Flags) -> None:
        """Add records; one without a date is of no day."""
        self._days.extend([day.toordinal() if day else 0 for day in days])
        self._tells_time.extend(tell_times)
        self._by_assistant.extend(by_assistant)

    def said_then(self, question: str, today: date | None, lexical: LexicalIndex) -> Floats | None:
        """Return how near each record is to days that the question names by their distance.

        `(records,)`: 1 for a record of these days, less in the days after. None if it names none
        that have records, or without `today`. "Before the move" counts from the record that
        `lexical` finds best for "the move".
        """
        if today is None or not names_a_distance(question):
            return None
        periods = [*relative_periods(question, today), *last_months(question, today)]
        anchor = anchored(question)
        if anchor is not None and (found := lexical.scores(anchor.text)).known:
            day = int(self._days.view[int(found.own.argmax())]) + anchor.days
            periods.append((day - anchor.slack, day + anchor.slack))
        near = self._nearest(periods)
        return near if near.max(initial=0) == 1 else None

    def add_to(self, scores: Floats, question: str, then: Floats | None = None) -> None:
        """Add to the scores of all records what they have of what the question asks for.

        `then` is what `said_then` found.
        """
        if asks_for_summary(question):
            scores += np.float32(self._weights.summary_bonus) * self._by_assistant.view
        if asks_when(question):
            scores += np.float32(self._weights.time_bonus) * self._tells_time.view
        if then is not None:
            scores += np.float32(self._weights.relative_date_bonus) * then
        if named := [each for each in named_days(question) if each.year or then is None]:
            scores += np.float32(self._weights.date_bonus) * self._named(named)

    def names_days(self, question: str) -> bool:
        """Return whether a question names a day, month or year of which there are records."""
        return bool(self._named(named_days(question)).max(initial=0) == 1)

    def _named(self, named: Sequence[NamedDays]) -> Floats:
        """Return the nearness of each record to the nearest of these days, `(records,)`."""
        dated = self._days.view[self._days.view > 0] if named else self._days.view[:0]
        if not len(dated):
            return np.zeros(len(self._days), np.float32)
        years = [date.fromordinal(int(day)).year for day in (dated.min(), dated.max())]
        return self._nearest([period for each in named for period in each.periods(*years)])

    def _nearest(self, periods: Sequence[Period]) -> Floats:
        """Return the nearness of each record to the nearest of these periods, `(records,)`."""
        days, near = self._days.view, np.zeros(len(self._days), np.float32)
        for first, last in periods:  # it falls to 0 in the days after a period
            fading = 1 - (days - last) / np.float32(self._weights.date_fade_days)
            np.maximum(near, np.where(days < first, 0, np.clip(fading, 0, 1)), out=near)
        return near
