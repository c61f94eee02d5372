"""What a question asks for besides its words: a time or a number, a whole list, certain days.

Days have their names, or their distance: "yesterday", "last summer", "two weeks before the move".
Pure. The phrases and the months of each language are in `languages.toml`, the words of distances in
`relative_days.toml`. Seasons are those of the northern half of the earth.
"""

import re
import tomllib
from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.resources import files

from memory.search.words import (
    CLAIMED_BY,
    FUNCTION_WORDS,
    LANGUAGES,
    LANGUAGES_OF_SCRIPT,
    asked_words_of,
    fold,
    languages_of,
    script_of,
    stem,
    words_of,
)

Period = tuple[int, int]
"""The first and the last day of a period, as ordinals (see `date.toordinal`)."""

_POLITE_JAPANESE = ("ですか", "ますか", "でしたか", "ましたか", "ませんか", "しょうか")
QUESTION_MARKS = ("?", "？", "؟", "⸮", "՞", *_POLITE_JAPANESE)

_SENTENCE_END = re.compile(r"(?<![DM]r)[.!…]\s+|[。！]")
_BEFORE_SENTENCE = re.compile(  # asks nothing: "Where: Graz", and a clause ("Когда я был мал, …")
    r"(?i)^\W*(?:\w+:\s|(?:cuando|quando|wanneer|när|når|когда|коли|kiedy)\s[^,]*,)"
)
_MAX_QUESTION_WORDS, _MAX_READ_CHARS = 20, 400  # of a question without its mark

_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_DIGIT_DATE = re.compile(
    r"(?<![\w.,/-])(?:(\d{4})-(\d\d?)-(\d\d?)|(\d\d?)[./](\d\d?)[./](\d{4})|(\d\d?)\.(\d\d?)\.)(?![\w-])"
)
_HAN_MONTH = re.compile("十?[一二三四五六七八九十]月|\\d{1,2}月")
_MAX_NAMED = 60  # days that are read of one question: each is compared with all that was said

_TIMES = frozenset().union(*(language.words("times") for language in LANGUAGES.values()))
_HAN_TIMES = LANGUAGES["zh"].words("times")


def _any_of(*lists: str, codes: Iterable[str] = LANGUAGES) -> str:
    """Return a pattern of the phrases of these languages in these lists; # * $ are said there."""
    listed = ",".join(LANGUAGES[code].lists.get(name, "") for name in lists for code in codes)
    phrases = [" ".join(phrase.split()) for phrase in listed.split(",") if phrase.strip()]
    is_han = {phrase: "\u3400" <= phrase[0] <= "\u9fff" for phrase in phrases}
    spaced = "|".join(re.escape(fold(each)) for each in phrases if not is_han[each])
    spaced = spaced.replace(r"\#", r"\d+").replace(r"\*", r"\w{3,}").replace(r"\$", "$")
    # Where no spaces are written, a phrase may stand within a longer run.
    unspaced = [re.escape(each) for each in phrases if is_han[each]]
    return "|".join((rf"\b(?:{spaced or '(?!)'})\b", *unspaced))


_GREETINGS = re.compile(rf"^(?:(?:{_any_of('small_talk')}) ?)+")
_SUMS = re.compile(_any_of("sums"))


def is_question(text: str) -> bool:
    """Return whether a text ends with a question mark, or with か in polite Japanese."""
    return text.rstrip().rstrip("。").endswith(QUESTION_MARKS)


def asks(text: str) -> bool:
    """Return whether a text is a question, with or without its mark, which many leave out.

    Without it, its last line or last sentence begins like a question, or has a question word later
    ("adın ne"). A longer one tells something, and so does a text with "!" at its end.
    """
    if is_question(text) or text.rstrip().endswith(("!", "！")):
        return is_question(text)
    line = text.strip().rpartition("\n")[2][-_MAX_READ_CHARS:]
    for said in dict.fromkeys((line, _SENTENCE_END.split(line)[-1])):
        words = words_of(_BEFORE_SENTENCE.sub("", said))
        if len(words) <= _MAX_QUESTION_WORDS:
            asked = _GREETINGS.sub("", " ".join(words))
            codes = [*filter(None, languages_of(words, {}).values())] or LANGUAGES
            if any(_question_patterns()[code].search(asked) for code in codes):
                return True
    return False


@cache
def _question_patterns() -> dict[str, re.Pattern[str]]:
    patterns, lists = {}, (("before_asks",), ("asks", "asks_summary"), ("asks_within",))
    for code in LANGUAGES:
        before, first, within = (_any_of(*each, codes=[code]) for each in lists)
        patterns[code] = re.compile(rf"^(?:(?:{before}) ){{,2}}(?:{first})|{within}")
    return patterns


def as_question(query: str) -> str:
    """Return a query with a question mark at its end, because a query always asks."""
    return query if is_question(query) else f"{query}?"


def _finds(phrases: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda question: phrases.search(" ".join(words_of(question))) is not None


_ALL, _FIRST = re.compile(_any_of("asks_all", "asks_summary")), re.compile(_any_of("asks_first"))
_SUMMARY, _WHEN = re.compile(_any_of("asks_summary")), re.compile(_any_of("asks_when"))
asks_for_all = _finds(_ALL)
"""Whether a question asks for a list, a summary or an order rather than one thing."""
asks_for_first = _finds(_FIRST)
"""Whether a question asks for the first thing that a person has said."""
asks_for_summary = _finds(_SUMMARY)
asks_when = _finds(_WHEN)
"""Whether a question asks for a time or a number."""


def without_small_talk(words: Sequence[str]) -> list[str]:
    """Return folded words without greetings and the like at their beginning, and without sums."""
    return _SUMS.sub(" ", _GREETINGS.sub("", " ".join(words))).split()


def tells_time(word: str) -> bool:
    """Return whether a folded word has a digit or stands for a time."""
    is_han = not (word.isascii() or _HAN_TIMES.isdisjoint(word))
    return is_han or not word.isalpha() or word in _TIMES


@dataclass(frozen=True, slots=True)
class NamedDays:
    """Days that a question names; 0 for a day, month or year that it leaves open."""

    day: int = 0
    month: int = 0
    year: int = 0

    def periods(self, first_year: int, last_year: int) -> list[Period]:
        """Return the periods that are meant, in these years if the question names no year."""
        years = [self.year] if self.year else range(first_year, last_year + 1)
        first, last = self.month or 1, self.month or 12
        ends = [(year, monthrange(year, last)[1]) for year in years]
        days = [(y, self.day or 1, self.day or end) for y, end in ends if self.day <= end]
        return [(date(y, first, a).toordinal(), date(y, last, b).toordinal()) for y, a, b in days]


def named_days(question: str) -> list[NamedDays]:
    """Return the days, months or years that a question names, up to `_MAX_NAMED`."""
    words = asked_words_of(_DIGIT_DATE.sub(_in_words, question, _MAX_NAMED))
    years = {at: int(word) for at, word in enumerate(words) if _is_year(word)}
    days = {at: int(found[1]) for at, word in enumerate(words) if (found := _DAY.fullmatch(word))}
    months = _months(words)
    named = {} if months else dict.fromkeys(NamedDays(0, 0, year) for year in years.values())
    for at, month in months.items():
        near = (at - 1, at + 1, at - 2, at + 2)
        day_at = next((each for each in near if 1 <= days.get(each, 0) <= 31), -1)
        day = days.pop(day_at, 0)  # a number is the day of one month
        own = [years[each] for each in (*near, at + 3) if each in years][:1]
        named |= {NamedDays(day, month, year): None for year in own or years.values() or [0]}
    return list(named)[:_MAX_NAMED]


def _in_words(written: re.Match[str]) -> str:
    """Return a date in digits with its month as a word, or the text itself if it is no date.

    "10/12/2026" may be 10 December or 12 October: both are returned.
    """
    parts = [each for each in written.groups() if each]
    day, month, *year = reversed(parts) if written[1] else parts  # an ISO date begins with the year
    read = [(day, month), (month, day)] if "/" in written[0] else [(day, month)]
    dates = [f" {int(d)} {int(m)}月 " for d, m in read if 0 < int(d) <= 31 and 0 < int(m) <= 12]
    return "".join(date + "".join(year) + " " for date in dates) or written[0]


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdecimal() and 1900 <= int(word) < 2100


def _months(words: Sequence[str]) -> dict[int, int]:
    guessed, months = languages_of(words, {}), dict[int, int]()
    near = ["", "", *words, "", ""]
    for at, word in enumerate(words):
        script, han = script_of(word), None if word.isascii() else _HAN_MONTH.search(word)
        guess = "zh" if han else guessed.get(script)
        codes = [guess] if guess else LANGUAGES_OF_SCRIPT.get(script, ())
        for code in codes:
            if not (month := _month_in(han[0] if han else word, code)):
                continue
            is_unclear = any(word in _UNCLEAR[each] for each in codes)
            is_joined = at - 2 in months and words[at - 1] in _JOINS[code]
            if not is_unclear or is_joined or _is_time(near[at : at + 5], code):
                months[at] = month
                break
    return months


def _is_time(near: Sequence[str], code: str) -> bool:
    """Return whether an unclear word is a time, by the two words before it and after it.

    A word alone is one, and so is one behind "how was": it is all that is asked about.
    """
    earlier, before, _, after, later = near
    if after in _NEVER[code]:
        return False
    prior = earlier if before in _JOINS[code] else before
    is_marked = {before, prior} & _BEFORE[code] or after in _AFTER[code] or _is_year(after)
    # "March 3", but not "march 3 miles"
    is_dated = _DAY.fullmatch(after) and (later in {"", *FUNCTION_WORDS[code]} or _is_year(later))
    is_asked = f"{earlier}_{before}" in _ASKED[code] and after in {"", *_BEFORE[code]}
    return bool(is_marked or is_dated or is_asked or _DAY.fullmatch(prior) or not before + after)


_UNCLEAR, _JOINS, _BEFORE, _AFTER, _NEVER, _ASKED = (
    {code: language.words(name) for code, language in LANGUAGES.items()}
    for name in ("unclear", "joins", "before_times", "after_times", "never_times", "ask_how")
)


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
_ENDINGS = "ьйяaeukσ"  # letters that other endings take the place of

_MONTHS = {
    code: {
        form if code == "zh" else stem(fold(form), code): number
        for number, forms in enumerate(language.months, 1)
        for form in forms
    }
    for code, language in LANGUAGES.items()
}

_DAYS = (1, 7, 30, 365)  # days of each unit: day, week, month, year

Meanings = Mapping[str, int]
"""What a word may be, by the name of the list, with its number in the list, from 0."""


def _read() -> dict[str, dict[str, dict[str, int]]]:
    text = files("memory.search").joinpath("relative_days.toml").read_text(encoding="utf-8")
    tables = {}
    for code, lists in tomllib.loads(text).items():
        table: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for kind, listed in lists.items():
            for number, forms in enumerate(listed.split()):
                for form in forms.split("/"):
                    table["_".join(words_of(form))][kind] = number
        tables[code] = dict(table)
    return tables


_TABLES = _read()
_PHRASES = {word.replace("_", " ") for table in _TABLES.values() for word in table if "_" in word}
_PHRASE = re.compile(rf"\b(?:{'|'.join(sorted(_PHRASES))})\b")
# "13天前" is not "3天前", "一周一次" is no Monday, "下周五" is to come, "目前天气" is now.
_NOT_BEHIND = r"(?<![\d一二三四五六七八九十两兩几幾每毎下目以之当當])"
_HAN_DAY = "|".join(sorted(_TABLES["zh"], key=len, reverse=True))
_HAN_DAYS = re.compile(f"{_NOT_BEHIND}(?:{_HAN_DAY})")


def relative_periods(question: str, today: date) -> list[Period]:
    """Return the past days that a question of `today` names by their distance ("last May")."""
    readings = list(_readings(question))
    found: list[Period] = []
    for words, meanings in readings:
        told = (_period(words, meanings, at, today) for at, each in enumerate(meanings) if each)
        if found := [each for each in told if each]:
            break
    is_last = any("last" in each for _, meanings in readings for each in meanings)
    for named in named_days(question) if is_last else ():
        past = [p for p in named.periods(today.year - 1, today.year) if p[1] < today.toordinal()]
        found += [] if named.year else past[-1:]
    return list(dict.fromkeys(found))[:_MAX_NAMED]


def anchored(question: str) -> tuple[str, Period] | None:
    """Return what a question counts its days from, as in "two weeks before the move".

    The period is that of the days that are meant, if what the text is about was on day 0.
    """
    for words, meanings in _readings(question):
        has_of = any("of" in each for each in meanings)
        for at in range(1, len(words)):
            unit, sides = meanings[at - 1].get("units"), meanings[at].keys() & {"before", "after"}
            is_of = not has_of or any("of" in each for each in meanings[at + 1 : at + 2])
            rest = " ".join(words[at + 1 + has_of :]) if sides and is_of else ""
            if unit is not None and rest:
                days = (_number(words, meanings, at - 2) or 1) * _DAYS[unit]
                day, slack = -days if "before" in sides else days, _DAYS[unit] // 2
                return rest, (day - slack, day + slack)
    return None


def _readings(question: str) -> Iterator[tuple[list[str], list[Meanings]]]:
    """Yield the words of a question with their meanings in each language, the likeliest first.

    The words of a phrase, such as "avant hier", are one.
    """
    joined = _HAN_DAYS.sub(r" \g<0> ", " ".join(asked_words_of(question)))
    words = _PHRASE.sub(lambda found: found[0].replace(" ", "_"), joined).split()
    near = ["", "", *words, "", ""]
    spoken = _TABLES.keys() & languages_of(words, {}).values()
    telling = [code for code, table in _TABLES.items() if not table.keys().isdisjoint(words)]
    for code in sorted(telling, key=lambda each: each not in spoken):
        table, unclear = _TABLES[code], _UNCLEAR[code]
        are_clear = (
            w not in unclear or _is_time(near[at : at + 5], code) for at, w in enumerate(words)
        )
        read = zip(words, are_clear, strict=True)
        yield words, [table[w] if is_clear and w in table else {} for w, is_clear in read]


def _number(words: Sequence[str], meanings: Sequence[Meanings], at: int) -> int:
    if at < 0:
        return 0
    is_number = words[at].isdecimal() and len(words[at]) < 3
    return int(words[at]) if is_number else meanings[at].get("numbers", -1) + 1


def _period(
    words: Sequence[str], meanings: Sequence[Meanings], at: int, today: date
) -> Period | None:
    word, day = meanings[at], today.toordinal()
    earlier, later = meanings[max(0, at - 2) : at], meanings[at + 1 : at + 2]
    # "¿Qué ha pasado este año?" is not about last year, nor "vor dem Tag" about yesterday.
    if at and words[at - 1] in CLAIMED_BY and not meanings[at - 1]:
        earlier = []
    is_last = any("last" in each for each in (*earlier, *later))
    is_ago = any("ago_first" in each for each in earlier) or any("ago_last" in e for e in later)
    if any("of" in each for each in meanings[at + 2 : at + 3]):
        return None
    if "last_weekdays" in word:
        word = {"days_ago": today.weekday() + 7 - word["last_weekdays"]}
    if "days_ago" in word or "weekdays" in word:
        day -= word.get("days_ago", (today.weekday() - word.get("weekdays", 0) - 1) % 7 + 1)
        return day, day
    if "seasons" in word and is_last:
        return _last_season(word["seasons"], today)
    if "units" in word and (is_last or is_ago):
        unit, count = word["units"], _number(words, meanings, at - 1)
        if is_ago:
            day -= (count or 1) * _DAYS[unit]
            return day - _DAYS[unit] // 2, day + _DAYS[unit] // 2
        return (day - count * _DAYS[unit], day) if count else _last_unit(unit, today)
    return _last_unit(word["last_units"] + 1, today) if "last_units" in word else None


def _last_unit(unit: int, today: date) -> Period:
    monday, new_year = today - timedelta(today.weekday()), today.replace(month=1, day=1)
    last = (today, monday, today.replace(day=1), new_year)[unit] - timedelta(1)
    first = (last, monday - timedelta(7), last.replace(day=1), last.replace(month=1, day=1))[unit]
    return first.toordinal(), last.toordinal()


def _last_season(season: int, today: date) -> Period:
    """Return the days of the latest season of this number that is over; 0 is spring."""
    month = 3 + 3 * season
    # In January 2026 the latest winter that is over began in 2024.
    ended = (date(y + month // 10, (month + 2) % 12 + 1, 1) for y in range(today.year, 0, -1))
    end = next(each for each in ended if each <= today) - timedelta(1)
    return date(end.year - month // 10, month, 1).toordinal(), end.toordinal()
