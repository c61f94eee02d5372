"""Script, stemmer, months and function words of each language, read from `languages.toml`."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Language:
    """One language. `stemmer` is the name of Snowball's algorithm; "" if there is none.

    `months` has the forms of each month's name, January first. `asks_when`, `asks_all`,
    `asks_first` and `asks_summary` are phrases of questions for a time or a number, for a list or
    an order, for the first thing that was said, and for a summary. `times` are words that tell a
    time or a number, `people` those for who somebody is to a person.
    """

    script: str
    stemmer: str
    months: tuple[tuple[str, ...], ...]
    function_words: frozenset[str]
    asks_when: tuple[str, ...]
    asks_all: tuple[str, ...]
    asks_first: tuple[str, ...]
    asks_summary: tuple[str, ...]
    times: frozenset[str]
    people: frozenset[str]


def _read() -> dict[str, Language]:
    text = files("memory.search").joinpath("languages.toml").read_text(encoding="utf-8")
    return {
        code: Language(
            script=entry["script"],
            stemmer=entry["stemmer"],
            months=tuple(tuple(month.split("/")) for month in entry["months"].split()),
            function_words=frozenset(entry["words"].split()),
            asks_when=_phrases(entry.get("asks_when", "")),
            asks_all=_phrases(entry.get("asks_all", "")),
            asks_first=_phrases(entry.get("asks_first", "")),
            asks_summary=_phrases(entry.get("asks_summary", "")),
            times=frozenset(entry.get("times", "").split()),
            people=frozenset(entry.get("people", "").split()),
        )
        for code, entry in tomllib.loads(text).items()
    }


def _phrases(listed: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in listed.split(",") if phrase.strip())


LANGUAGES = _read()
"""Languages by two-letter code."""
