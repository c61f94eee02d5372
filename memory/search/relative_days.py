"""Days that a question names by their distance: "yesterday", "last summer", "two weeks ago".

Pure. The words of each language are in `relative_days.toml`. Seasons are those of the northern
half of the earth.
"""

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from importlib.resources import files

from memory.search.question import Period, named_days
from memory.search.words import languages_of, words_of

_DAYS = (1, 7, 30, 365)
"""Days of each unit: day, week, month, year."""

_WEEK, _MONTH, _YEAR = 1, 2, 3
_NEAR = 2
"""A word within so many words of another one belongs to it."""

Meanings = Mapping[str, int]
"""What a word may be, by the name of the list, with its number in the list, from 0."""


@dataclass(frozen=True, slots=True)
class Anchored:
    """Days as far as `days` from those of what `text` is about, give or take `slack` days."""

    days: int
    slack: int
    text: str


def _read() -> dict[str, dict[str, dict[str, int]]]:
    text = files("memory.search").joinpath("relative_days.toml").read_text(encoding="utf-8")
    tables = {}
    for code, lists in tomllib.loads(text).items():
        table: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for kind, listed in lists.items():
            for number, forms in enumerate(listed.split()):
                for form in forms.split("/"):
                    table["".join(words_of(form))][kind] = number
        tables[code] = dict(table)
    return tables


_TABLES = _read()
_TELLING = frozenset(
    word
    for table in _TABLES.values()
    for word, meanings in table.items()
    if not meanings.keys().isdisjoint(("units", "days_ago", "weekdays", "seasons", "last"))
)


def names_a_distance(question: str) -> bool:
    """Return whether a question has a word that can name days by their distance."""
    return not _TELLING.isdisjoint(words_of(question))


def relative_periods(question: str, today: date) -> list[Period]:
    """Return the past days that a question of `today` names by their distance."""
    for words, meanings in _readings(question):
        read = (_period(words, meanings, at, today) for at in range(len(words)))
        if found := [each for each in read if each]:
            return found
    return []


def last_months(question: str, today: date) -> list[Period]:
    """Return the latest past days of each month that is called the last one ("last May")."""
    if not any("last" in each for _, meanings in _readings(question) for each in meanings):
        return []
    years = (today.year, today.year - 1)
    found = []
    for named in named_days(question):
        past = (p for year in years for p in named.periods(year, year) if p[1] < today.toordinal())
        found += [] if named.year else list(past)[:1]
    return found


def anchored(question: str) -> Anchored | None:
    """Return what a question counts its days from, as in "two weeks before the move"."""
    for words, meanings in _readings(question):
        for at in range(1, len(words)):
            sign = -1 if "before" in meanings[at] else 1
            unit = meanings[at - 1].get("units")
            if unit is None or meanings[at].keys().isdisjoint(("before", "after")):
                continue
            rest = words[at + 1 :]
            if any("of" in each for each in meanings):
                if not rest or "of" not in meanings[at + 1]:
                    continue
                rest = rest[1:]
            count = _number(words, meanings, at - 2) or 1
            if rest:
                days = sign * count * _DAYS[unit]
                return Anchored(days, _DAYS[unit] // 2, " ".join(rest))
    return None


def _readings(question: str) -> Iterator[tuple[list[str], list[Meanings]]]:
    """Yield the words of a question with their meanings in each language, the likeliest first."""
    words = words_of(question)
    spoken = _TABLES.keys() & languages_of(words, {}).values()
    telling = [code for code, table in _TABLES.items() if not table.keys().isdisjoint(words)]
    for code in sorted(telling, key=lambda each: each not in spoken):
        yield words, [_TABLES[code].get(word, {}) for word in words]


def _number(words: Sequence[str], meanings: Sequence[Meanings], at: int) -> int:
    """Return the number that stands at a position, 0 for none."""
    if at < 0:
        return 0
    if words[at].isdecimal() and len(words[at]) < 3:
        return int(words[at])
    return meanings[at].get("numbers", -1) + 1


def _period(
    words: Sequence[str], meanings: Sequence[Meanings], at: int, today: date
) -> Period | None:
    """Return the days that the word at a position names with the words around it."""
    word, day = meanings[at], today.toordinal()
    earlier, later = meanings[max(0, at - _NEAR) : at], meanings[at + 1 : at + 2]
    is_last = any("last" in each for each in (*earlier, *later))
    is_ago = any("ago_first" in each for each in earlier) or any("ago_last" in e for e in later)
    if any("of" in each for each in meanings[at + 2 : at + 3]):
        return None
    if "days_ago" in word or "weekdays" in word:
        weekday = word.get("weekdays", 0)
        day -= word.get("days_ago", (today.weekday() - weekday - 1) % 7 + 1)
        return day, day
    if "seasons" in word and is_last:
        return _last_season(word["seasons"], today)
    if "units" in word and (is_last or is_ago):
        unit, count = word["units"], _number(words, meanings, at - 1)
        if is_ago:
            day -= (count or 1) * _DAYS[unit]
            return day - _DAYS[unit] // 2, day + _DAYS[unit] // 2
        return (day - count * _DAYS[unit], day) if count else _last_unit(unit, today)
    return None


def _last_unit(unit: int, today: date) -> Period:
    """Return the days of the calendar's last week, month or year, or yesterday."""
    first = today
    if unit == _WEEK:
        first = today - timedelta(today.weekday())
    elif unit == _MONTH:
        first = today.replace(day=1)
    elif unit == _YEAR:
        first = today.replace(month=1, day=1)
    last = first - timedelta(1)
    begin = {_WEEK: first - timedelta(7), _MONTH: last.replace(day=1)}.get(unit, last)
    return (last.replace(month=1, day=1) if unit == _YEAR else begin).toordinal(), last.toordinal()


def _last_season(season: int, today: date) -> Period:
    """Return the days of the latest season of this number that is over; 0 is spring."""
    month = 3 + 3 * season
    # In January 2026 the latest winter that is over began in 2024.
    for year in range(today.year, today.year - 3, -1):
        end = date(year + month // 10, (month + 2) % 12 + 1, 1) - timedelta(1)
        if end < today:
            break
    return date(year, month, 1).toordinal(), end.toordinal()
