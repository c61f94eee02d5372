"""What the words of a question mean, for a model that only compares words.

Words of everyday talk that mean the same, also in another language, have one meaning; every other
word is its own stem. `offline_words.txt` has the list.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.resources import files

from memory.search.question import asks_when, tells_time
from memory.search.words import (
    FUNCTION_WORDS,
    LANGUAGES,
    fold,
    languages_of,
    script_of,
    stem,
    terms_of,
    words_of,
)

_CODES = ("en", "de", "ru", "es", "fa")
_NAME = "~"
NUMBER = "?"
"""What a question for a number asks for, and what a text with a number has."""
_NONE = "-"
_PERSIAN_ENDINGS = ["هایم", "های", "ها", "یم", "ام", "اش", "ای", "ی", "م", "ت", "ش"]
"""Of "my", "your" and the plural: there is no stemmer for Persian."""
_MIN_PART = 4


class _Meanings:
    """The list, by the stem of each word; `words` has those of each meaning and language."""

    def __init__(self) -> None:
        self.of_stem: dict[tuple[str, str], str] = {}
        self.words: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        self.phrases: dict[str, str] = {}
        self.empty = frozenset().union(*(FUNCTION_WORDS[code] for code in _CODES))
        text = files("bot.playground").joinpath("offline_words.txt").read_text("utf-8")
        for line in text.splitlines():
            if line and not line.startswith("#"):
                self._read(line)

    def _read(self, line: str) -> None:
        parts = line.split("|")
        mark = line[0] if line[0] in (_NAME, NUMBER, _NONE) else ""
        meaning = mark or f"={parts[0].split()[0]}"
        parts[0] = parts[0].removeprefix(mark)
        if mark == _NONE:
            self.empty |= {fold(word) for part in parts for word in part.split()}
            return
        for code, part in zip(_CODES, parts, strict=True):
            for word in map(fold, part.split()):
                if "_" in word:
                    self.phrases[word.replace("_", " ")] = meaning
                    continue
                self.of_stem.setdefault((code, stem(word, code)), meaning)
                self.words[meaning, code].setdefault(stem(word, code), word)

    def of(self, word: str, code: str) -> dict[str, str]:
        """Return the meaning of a word by its stem; of a German compound, those of its parts."""
        stemmed = stem(word, code)
        ends = [word.removesuffix(end) for end in _PERSIAN_ENDINGS if code == "fa"]
        for each in (stemmed, *ends):
            if (code, each) in self.of_stem:
                return {each: self.of_stem[code, each]}
        return self._of_parts(stemmed) if code == "de" else {}

    def _of_parts(self, compound: str) -> dict[str, str]:
        for at in range(_MIN_PART, len(compound) - _MIN_PART + 1):
            parts = stem(compound[:at], "de"), compound[at:]
            if ("de", parts[1]) in self.of_stem:
                return {
                    part: self.of_stem["de", part] for part in parts if ("de", part) in self.of_stem
                }
        return {}


_MEANINGS = _Meanings()
_PHRASES = re.compile(rf"\b(?:{'|'.join(map(re.escape, _MEANINGS.phrases))})\b")


def content_words(text: str) -> list[str]:
    """Return the folded words of `text` in order, without words that carry no meaning."""
    return [word for word in words_of(text) if word not in _MEANINGS.empty]


def asks_for_name(text: str) -> bool:
    """Return whether a text asks or says what somebody or something is called."""
    return any(meaning == _NAME for _, meaning in _both(words_of(text)))


def meanings(text: str) -> dict[str, str]:
    """Return what the content words of a text mean, by their stems, in order.

    A question for a number and a text that has one share `NUMBER`.
    """
    words = words_of(text)
    joined = " ".join(words)
    phrases = {found: _MEANINGS.phrases[found] for found in _PHRASES.findall(joined)}
    found = dict(_both(content_words(_PHRASES.sub(" ", joined))))
    has_number = NUMBER in found.values() or asks_when(text) or any(map(tells_time, words))
    told = {
        stemmed: meaning for stemmed, meaning in found.items() if meaning not in (_NAME, NUMBER)
    }
    return phrases | told | ({NUMBER: NUMBER} if has_number else {})


def readable(wanted: dict[str, str], texts: Sequence[str]) -> dict[str, str]:
    """Leave out words that no text can have: without a meaning, in a script of none of them."""
    scripts = {script_of(word) for text in texts for word in words_of(text)}
    return {
        word: meaning
        for word, meaning in wanted.items()
        if meaning != word or word == NUMBER or script_of(word) in scripts
    }


def alike(meaning: str, language: str) -> list[str]:
    """Return the words of a meaning in one language, one of each stem; itself if it has none."""
    return list(_MEANINGS.words[meaning, language].values()) or [meaning.removeprefix("=")]


def language_of(texts: Sequence[str]) -> str:
    """Return the language of most words among the five of the bot; "en" if it is not clear."""
    spoken = languages_of([word for text in texts for word in words_of(text)], {})
    return next((code for code in spoken.values() if code in _CODES), "en")


def _both(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield stem and meaning of each word, in the language of all; if unclear, in any."""
    spoken = languages_of(words, {})
    for word in words:
        script = script_of(word)
        if not script:
            yield from ((term, term) for term in terms_of([word], {}))
            continue
        clear = spoken.get(script)
        of_script = [code for code in _CODES if LANGUAGES[code].script == script]
        codes = [clear] if clear in _CODES else of_script
        found = next(filter(None, (_MEANINGS.of(word, code) for code in codes)), {})
        stemmed = stem(word, codes[0]) if codes else word
        yield from (found or {stemmed: stemmed}).items()
