"""The fixed sentences of every language, found by key.

Sentences are Markdown for `bot.reply.render`; buttons and menu descriptions are plain. What the
model is told is written elsewhere, in English.
"""

import re
import tomllib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_DEFAULT = "en"
_MARKUP = re.compile(r"[!-/:-@\[-`{-~]")  # ASCII punctuation


class Catalogue:
    """Reads all files, once in a process; afterwards a lookup touches no disk."""

    def __init__(self) -> None:
        files = sorted(_FOLDER.glob("*.toml"))
        english = _read(_FOLDER / f"{_DEFAULT}.toml")
        # A sentence that a language lacks is said in English; without it the bot would not start.
        self._sentences = {file.stem: english | _read(file) for file in files}

    @property
    def languages(self) -> tuple[str, ...]:
        """The two-letter codes, in alphabetical order."""
        return tuple(self._sentences)

    def __contains__(self, key: str) -> bool:
        """Say whether there is a sentence `table.name`."""
        return key in self._sentences[_DEFAULT]

    def text(self, language_code: str, key: str, **values: object) -> str:
        """Return the sentence `table.name`, in English for a language that we do not speak.

        `de-AT` finds German. Values are shown as they are, whatever signs are in them. Raise
        `KeyError` for a key that does not exist or a value that is missing.
        """
        language = language_code.lower().replace("_", "-").partition("-")[0]
        sentences = self._sentences.get(language) or self._sentences[_DEFAULT]
        return sentences[key].format_map({name: _shown(value) for name, value in values.items()})

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


def _shown(value: object) -> str:
    """Return a value on one line, its signs as character references: these are never markup."""
    return _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", " ".join(str(value).split()))
