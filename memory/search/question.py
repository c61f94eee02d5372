"""What a question asks for besides its words: a time or a number, a whole list, certain days.

Days have their names, or their distance: "yesterday", "last summer", "two weeks before the move".
Pure. The phrases and the months of each language are in `languages.toml`, the words of distances in
`relative_days.toml`. Seasons are those of the northern half of the earth.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from importlib.resources import files

from memory.search.words import LANGUAGES, UNKNOWN, fold, languages_of, script_of, stem, words_of

Period = tuple[int, int]
"""The first and the last day of a period, as ordinals (see `date.toordinal`)."""

QUESTION_MARKS = ("?", "？", "؟", "⸮", "՞")

_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_HAN_MONTH = re.compile("十?[一二三四五六七八九十]月|\\d{1,2}月")
_NEAR = 2
"""A word within so many words of another one belongs to it, as the number of a day to a month."""

_TIMES = frozenset(fold(word) for language in LANGUAGES.values() for word in language.times)
_HAN_TIMES = frozenset(LANGUAGES["zh"].times)


def _any_of(*lists: str) -> str:
    """Return a pattern of the phrases of all languages in these lists; # and * are said there."""
    entries = [each.phrases for each in LANGUAGES.values()]
    listed = ",".join(entry[name] for name in lists for entry in entries if name in entry)
    phrases = [" ".join(phrase.split()) for phrase in listed.split(",")]
    is_han = {phrase: "\u3400" <= phrase[0] <= "\u9fff" for phrase in phrases}
    spaced = "|".join(re.escape(fold(each)) for each in phrases if not is_han[each])
    spaced = spaced.replace(r"\#", r"\d+").replace(r"\*", r"\w{3,}")
    # Where no spaces are written, a phrase may stand within a longer run.
    unspaced = [re.escape(each) for each in phrases if is_han[each]]
    return "|".join((rf"\b(?:{spaced})\b", *unspaced))


_WHEN, _FIRST = re.compile(_any_of("asks_when")), re.compile(_any_of("asks_first"))
_ALL = re.compile(_any_of("asks_all", "asks_summary"))
_SUMMARY = re.compile(_any_of("asks_summary"))
_SMALL_TALK = re.compile(rf"^(?:(?:{_any_of('small_talk')}) ?)+|{_any_of('sums')}")


def is_question(text: str) -> bool:
    """Return whether a text ends with a question mark."""
    return text.rstrip().endswith(QUESTION_MARKS)


def as_question(query: str) -> str:
    """Return a query as a question, since it asks without a question mark, too."""
    return query if is_question(query) else f"{query}?"


def asks_for_all(question: str) -> bool:
    """Return whether a question asks for a list, a summary or an order rather than one thing."""
    return _ALL.search(fold(question)) is not None


def asks_for_first(question: str) -> bool:
    """Return whether a question asks for the first thing that a person has said."""
    return _FIRST.search(" ".join(words_of(question))) is not None


def without_small_talk(words: Sequence[str]) -> list[str]:
    """Return folded words without greetings and the like at their beginning, and without sums."""
    return _SMALL_TALK.sub(" ", " ".join(words)).split()


def asks_for_summary(question: str) -> bool:
    """Return whether a question asks for a summary."""
    return _SUMMARY.search(fold(question)) is not None


def asks_when(question: str) -> bool:
    """Return whether a question asks for a time or a number."""
    return _WHEN.search(fold(question)) is not None


def tells_time(word: str) -> bool:
    """Return whether a folded word has a digit or stands for a time."""
    if not word.isalpha() or word in _TIMES:
        return True
    return not (word.isascii() or _HAN_TIMES.isdisjoint(word))


@dataclass(frozen=True, slots=True)
class NamedDays:
    """Days that a question names; 0 for a day, month or year that it leaves open."""

    day: int = 0
    month: int = 0
    year: int = 0

    def periods(self, first_year: int, last_year: int) -> list[Period]:
        """Return the periods that are meant, in these years if the question names no year."""
        years = [self.year] if self.year else range(first_year, last_year + 1)
        return [period for year in years if (period := self._in(year))]

    def _in(self, year: int) -> Period | None:
        begin = date(year, self.month or 1, 1)
        after = date(year + self.month // 12, self.month % 12 + 1, 1)
        last = after - timedelta(1) if self.month else date(year, 12, 31)
        if self.day > last.day:
            return None
        if self.day:
            begin = last = begin.replace(day=self.day)
        return begin.toordinal(), last.toordinal()


def named_days(question: str) -> list[NamedDays]:
    """Return the days, months or years that a question names."""
    words = words_of(question)
    languages = languages_of(words, {})
    years = [int(word) for word in words if _YEAR.fullmatch(word)]
    months = {at: month for at, word in enumerate(words) if (month := _month(word, languages))}
    if not months:
        return [NamedDays(year=year) for year in years]
    named = []
    for at, month in months.items():
        near = words[max(0, at - _NEAR) : at + _NEAR + 1]
        days = [int(found[1]) for word in near if (found := _DAY.fullmatch(word))]
        day = next((day for day in days if 1 <= day <= 31), 0)
        named += [NamedDays(day, month, year) for year in years or [0]]
    return named


def _month(word: str, languages: dict[str, str]) -> int:
    """Return the number of the month that a word names, 0 for none."""
    if found := _HAN_MONTH.search(word):
        return _MONTHS["zh"].get(found[0], 0)
    script = script_of(word)
    code = languages.get(script, UNKNOWN)
    codes = [code] if code else [c for c in LANGUAGES if LANGUAGES[c].script == script]
    return next((month for c in codes if (month := _month_in(word, c))), 0)


def _month_in(word: str, code: str) -> int:
    """Return the number of the month of a language that a word names, 0 for none.

    A stem alone may be that of another word: in Arabic that of a Persian violin is that of July.
    """
    month = _MONTHS[code].get(stem(word, code), 0)
    forms = map(fold, LANGUAGES[code].months[month - 1])
    if code in _INFLECTED:
        return month * any(form.rstrip(_ENDINGS) in word for form in forms)
    return month * (word in forms)


_INFLECTED = frozenset(("ru", "uk", "pl", "cs", "tr", "fi", "hu", "el", "hy", "ta", "ar"))
_ENDINGS = "ьйяaeukσ"
"""Letters that other endings take the place of."""

_MONTHS = {
    code: {
        form if code == "zh" else stem(fold(form), code): number
        for number, forms in enumerate(language.months, 1)
        for form in forms
    }
    for code, language in LANGUAGES.items()
}


_DAYS = (1, 7, 30, 365)
"""Days of each unit: day, week, month, year."""

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
    monday, new_year = today - timedelta(today.weekday()), today.replace(month=1, day=1)
    last = (today, monday, today.replace(day=1), new_year)[unit] - timedelta(1)
    first = (last, monday - timedelta(7), last.replace(day=1), last.replace(month=1, day=1))[unit]
    return first.toordinal(), last.toordinal()


def _last_season(season: int, today: date) -> Period:
    """Return the days of the latest season of this number that is over; 0 is spring."""
    month = 3 + 3 * season
    # In January 2026 the latest winter that is over began in 2024.
    for year in range(today.year, today.year - 3, -1):
        end = date(year + month // 10, (month + 2) % 12 + 1, 1) - timedelta(1)
        if end < today:
            break
    return date(year, month, 1).toordinal(), end.toordinal()
