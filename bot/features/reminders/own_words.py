"""Tells whether a reminder is what a person has just asked for in their own words. Pure.

Such a reminder needs no question, even if a file or a page is part of the talk. If in doubt it is
not theirs, and they are asked.
"""

import re
import tomllib
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

_WORD = re.compile(r"\d+|\w{3,}")
_RUN = re.compile(r"\w+")
_NUMBER = re.compile(r"\d{1,5}")
_STEM = 4  # forms of one word share their first four letters
_LANGUAGES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).values()
_YOURS = frozenset(word for each in _LANGUAGES for word in each["yours"].split())
"""A model says "your sister" where the person said "my sister"."""
_TIME = re.compile("|".join(each["time"] for each in _LANGUAGES))
_REPEATS = re.compile("|".join(each["repeats"] for each in _LANGUAGES))


def is_own_wish(said: str, text: str, numbers: AbstractSet[int], *, repeats: bool) -> bool:
    """Return whether a message says the text of a reminder and when it is.

    `numbers` are those by which a person may say its time. If the message has numbers, one of them
    has to be of these; else it has to have a word for a time. What repeats has to be said, too.
    """
    plain = said.casefold()
    found = {int(each) for each in _NUMBER.findall(plain)}
    is_time_said = bool(found & numbers) if found else bool(_TIME.search(plain))
    if not is_time_said or (repeats and not _REPEATS.search(plain)):
        return False
    wanted = _stems(text)
    line = _line(text)
    return bool(line) and (line in _line(said) or bool(wanted and wanted <= _stems(said)))


def is_named(text: str, passages: Iterable[str]) -> bool:
    """Return whether any of the passages has the text of a reminder."""
    return any(_line(text) in _line(each) for each in passages)


def _stems(text: str) -> set[str]:
    words = {each for each in _WORD.findall(text.casefold()) if each not in _YOURS}
    return {each if each.isdigit() else each[:_STEM] for each in words}


def _line(text: str) -> str:
    """Return the words of a text, so that markup and punctuation in between hide nothing."""
    return " ".join(_RUN.findall(text.casefold()))
