"""What records have that some questions ask for: a day, a time or number, a summary."""

from collections.abc import Sequence
from datetime import date

import numpy as np

from memory.search.asked import asks_for_summary, asks_when, named_days, tells_time
from memory.search.growing import Floats, GrowingArray
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

    def append(
        self, words: Sequence[str], said_on: date | None, *, by_assistant: bool = False
    ) -> None:
        """Add a record of these folded words; one without a date is of no day."""
        self._days.append(said_on.toordinal() if said_on else 0)
        self._tells_time.append(tells_time(words))
        self._by_assistant.append(by_assistant)

    def remove(self, at: int) -> None:
        """Remove a record; those after it move up."""
        self._days.remove(at)
        self._tells_time.remove(at)
        self._by_assistant.remove(at)

    def add_to(self, scores: Floats, question: str) -> None:
        """Add to the scores of all records what they have of what the question asks for."""
        if asks_for_summary(question):
            scores += np.float32(self._weights.summary_bonus) * self._by_assistant.view
        if asks_when(question):
            scores += np.float32(self._weights.time_bonus) * self._tells_time.view
        if not (named := named_days(question)):
            return
        dated = self._days.view[self._days.view > 0]
        if len(dated):
            years = [date.fromordinal(int(day)).year for day in (dated.min(), dated.max())]
            near = np.zeros_like(scores)
            for period in (period for each in named for period in each.periods(*years)):
                np.maximum(near, self._nearness(*period), out=near)
            scores += np.float32(self._weights.date_bonus) * near

    def _nearness(self, first: int, last: int) -> Floats:
        """Return 1 for records of these days, falling to 0 in the days after them."""
        days = self._days.view
        fading = 1 - (days - last) / np.float32(self._weights.date_fade_days)
        nearness: Floats = np.where(days < first, 0, np.clip(fading, 0, 1)).astype(np.float32)
        return nearness
