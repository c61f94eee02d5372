"""Finds the fixed sentences of every language by key.

Sentences are Markdown for `bot.reply.render`; labels of buttons and descriptions of commands are
plain text. Texts for the model are not here: they are in English, beside the code that sends them.
"""

import string
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path

_FOLDER = Path(__file__).parent
_DEFAULT = "en"
_WORDS = "words."
_NO_MARKUP = {ord(each): f"&#{ord(each)};" for each in string.punctuation}
"""Any of them may be markup; as character references they are not."""

Added = Mapping[str, Mapping[str, str]]  # sentences by language and key


class Catalogue:
    """Reads the file of a language when it is first needed, once in a process.

    A file takes 4 ms, and a start needs only the English one.
    """

    def __init__(self) -> None:
        self._files = {file.stem: file for file in sorted(_FOLDER.glob("*.toml"))}
        self._added: list[Added] = []
        self._sentences: dict[str, dict[str, str]] = {}

    @cached_property
    def _meanings(self) -> dict[str, str]:
        return {
            said: key.removeprefix(_WORDS).replace("_", " ")
            for file in self._files.values()
            for key, sentence in _read(file).items()
            if key.startswith(_WORDS)
            for said in sentence.split(", ")
        }

    @property
    def languages(self) -> tuple[str, ...]:
        """The two-letter codes, in alphabetical order."""
        return tuple(self._files)

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of the English file; those that were added last."""
        return tuple(self._of(_DEFAULT))

    def __contains__(self, key: str) -> bool:
        return key in self._of(_DEFAULT)

    def add(self, sentences: Added) -> None:
        """Add sentences by language and key; a language that they lack says them in English.

        Raise `ValueError` for a key that exists already.
        """
        english = sentences.get(_DEFAULT, {})
        if taken := sorted(self._of(_DEFAULT).keys() & english.keys()):
            raise ValueError(f"the sentence {taken[0]} exists already")
        self._added.append(sentences)
        self._sentences.clear()

    def text(self, language_code: str, key: str, **values: object) -> str:
        """Return the sentence `table.name`; English for a language without a file.

        `de-AT` finds German. Values are shown literally, on one line, whatever characters they
        have; fractions with the decimal point or comma of the language. If it has several forms,
        the number `count` chooses one. Raise `KeyError` for an unknown key or a missing value.
        """
        language = language_code.lower().replace("_", "-").partition("-")[0]
        sentences = self._of(language if language in self._files else _DEFAULT)
        form = _form(sentences[key], values.get("count"))
        point = sentences.get("lists.decimal_point", ".")
        shown = {name: _literal(value, point) for name, value in values.items()}
        return form.format_map(shown)

    def _of(self, language: str) -> dict[str, str]:
        """Return the sentences of a language that has a file; those that it lacks in English."""
        if language not in self._sentences:
            known = _read(self._files[_DEFAULT]) | _read(self._files[language])
            for each in self._added:
                known |= {**each.get(_DEFAULT, {}), **each.get(language, {})}
            self._sentences[language] = known
        return self._sentences[language]

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
    return {
        f"{table}.{name}": sentence.strip()
        for table, sentences in tomllib.loads(file.read_text(encoding="utf-8")).items()
        for name, sentence in sentences.items()
    }


def _literal(value: object, decimal_point: str) -> str:
    """Return a value as Markdown without markup, on one line; money is a `Decimal`."""
    if isinstance(value, float | Decimal):
        digits = f"{value:.4f}" if isinstance(value, Decimal) else f"{round(value, 1):.10g}"
        value = digits.replace(".", decimal_point)
    return " ".join(str(value).split()).translate(_NO_MARKUP)


def _form(sentence: str, count: object) -> str:
    """Return the form for a count: of two the first is for 1; three are for 1, 2 to 4, others."""
    forms = sentence.split(" | ")
    if len(forms) == 1 or not isinstance(count, int):
        return sentence
    if len(forms) == 2:
        return forms[count != 1]
    ones = 0 if count // 10 % 10 == 1 else count % 10
    return forms[0 if ones == 1 else 1 if 2 <= ones <= 4 else 2]
