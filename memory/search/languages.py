"""Script, stemmer, months and function words of each language, read from `languages.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Language:
    """One language. `stemmer` is the name of Snowball's algorithm; "" if there is none.

    `months` has the forms of each month's name, January first. `times` are words that tell a time
    or a number, `people` those for who somebody is to a person. `phrases` has lists with commas
    by their names in `languages.toml`, which says what they are.
    """

    script: str
    stemmer: str
    months: tuple[tuple[str, ...], ...]
    function_words: frozenset[str]
    phrases: Mapping[str, str]
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
            phrases=entry,
            times=frozenset(entry.get("times", "").split()),
            people=frozenset(entry.get("people", "").split()),
        )
        for code, entry in tomllib.loads(text).items()
    }


LANGUAGES = _read()
"""Languages by two-letter code."""
