"""Finds the fixed sentences of every language by key.

Sentences are Markdown for `bot.reply.render`; labels of buttons and descriptions of commands are
plain text. Texts for the model are not here: they are in English, beside the code that sends them.
"""

import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_DEFAULT = "en"
_WORDS = "words."
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")  # of ASCII, any of which may be markup


class Catalogue:
    """Reads all files once in a process; a lookup does not touch the disk."""

    def __init__(self) -> None:
        files = sorted(_FOLDER.glob("*.toml"))
        english = _read(_FOLDER / f"{_DEFAULT}.toml")
        # A sentence that a language lacks is said in English; an incomplete file is no error.
        self._sentences = {file.stem: english | _read(file) for file in files}

        self._meanings = {
            said: key.removeprefix(_WORDS).replace("_", " ")
            for sentences in self._sentences.values()
            for key in sentences
            if key.startswith(_WORDS)
            for said in sentences[key].split(", ")
        }

    @property
    def languages(self) -> tuple[str, ...]:
        """The two-letter codes, in alphabetical order."""
        return tuple(self._sentences)

    def __contains__(self, key: str) -> bool:
        """Say whether a sentence `table.name` exists."""
        return key in self._sentences[_DEFAULT]

    def add(self, sentences: Mapping[str, Mapping[str, str]]) -> None:
        """Add sentences by language and key; a language that they lack says them in English.

        Raise `ValueError` for a key that exists already.
        """
        english = sentences.get(_DEFAULT, {})
        if taken := sorted(self._sentences[_DEFAULT].keys() & english.keys()):
            raise ValueError(f"the sentence {taken[0]} exists already")
        for language, known in self._sentences.items():
            known |= {**english, **sentences.get(language, {})}

    def text(self, language_code: str, key: str, **values: object) -> str:
        """Return the sentence `table.name`; English for a language without a file.

        `de-AT` finds German. Values are shown literally, on one line, whatever characters they
        have. If it has several forms, the number `count` chooses one. Raise `KeyError` for an
        unknown key or a missing value.
        """
        language = language_code.lower().replace("_", "-").partition("-")[0]
        sentences = self._sentences.get(language) or self._sentences[_DEFAULT]
        form = _form(sentences[key], values.get("count"))
        return form.format_map({name: _shown(value) for name, value in values.items()})

    def meaning(self, said: str) -> str:
        """Return the name in the table `words` under which a language lists this, "" if none."""
        return self._meanings.get(said, "")

    def day(self, language_code: str, at: float) -> str:
        """Return the date (UTC) of a time in Unix seconds, as people of the language write it."""
        moment = datetime.fromtimestamp(at, UTC)
        month = self.text(language_code, "dates.months").split()[moment.month - 1]
        return self.text(language_code, "dates.day", day=moment.day, month=month, year=moment.year)


@cache
def _read(file: Path) -> dict[str, str]:
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        f"{table}.{name}": sentence.strip()
        for table, sentences in tables.items()
        for name, sentence in sentences.items()
    }


def _form(sentence: str, count: object) -> str:
    """Return the form for a count: of two the first is for 1; three are for 1, 2 to 4, others."""
    forms = sentence.split(" | ")
    if len(forms) == 1 or not isinstance(count, int):
        return sentence
    if len(forms) == 2:
        return forms[count != 1]
    ones = 0 if count // 10 % 10 == 1 else count % 10
    return forms[0 if ones == 1 else 1 if 2 <= ones <= 4 else 2]


def _shown(value: object) -> str:
    """Return a value on one line; its punctuation as character references is never markup."""
    return _PUNCTUATION.sub(lambda found: f"&#{ord(found[0])};", " ".join(str(value).split()))
