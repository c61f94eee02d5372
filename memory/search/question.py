"""What a question asks for besides its words: a time or a number, a whole list, certain days.

Pure. The phrases and the months of each language are in `languages.toml`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from memory.search.languages import LANGUAGES
from memory.search.words import UNKNOWN, fold, languages_of, script_of, stem, words_of

Period = tuple[int, int]
"""The first and the last day of a period, as ordinals (see `date.toordinal`)."""

QUESTION_MARKS = ("?", "？", "؟", "⸮", "՞")

_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_HAN_MONTH = re.compile("十?[一二三四五六七八九十]月|\\d{1,2}月")
_NEAR = 2
"""A number within so many words of a month is its day."""

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
