"""When each record was said, and which ones tell a time or a number."""

from collections.abc import Sequence
from datetime import date

import numpy as np

from memory.search.asked import asks_when, named_days, tells_time
from memory.search.growing import Floats, GrowingArray
from memory.search.weights import Weights


class Times:
    """The day of each record, by position, and whether its words tell a time or a number."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._days = GrowingArray(np.int32)
        self._tells_time = GrowingArray(np.bool_)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._days.nbytes + self._tells_time.nbytes

    def append(self, words: Sequence[str], said_on: date | None) -> None:
        """Add a record of these folded words; one without a date is of no day."""
        self._days.append(said_on.toordinal() if said_on else 0)
        self._tells_time.append(tells_time(words))

    def remove(self, at: int) -> None:
        """Remove a record; those after it move up."""
        self._days.remove(at)
        self._tells_time.remove(at)

    def add_to(self, scores: Floats, question: str) -> None:
        """Add to the scores of all records what times and days in the question are worth."""
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
