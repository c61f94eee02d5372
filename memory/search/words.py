"""Turns text into index terms: words stemmed by language, n-grams for scripts without spaces.

What it knows of each language is in `languages.toml`. The same text gives the same terms on every
machine and in every process. Only the text is stored; terms are computed when it is loaded.
"""

import functools
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from itertools import chain

from Stemmer import Stemmer


@dataclass(frozen=True, slots=True)
class Language:
    """One language. `stemmer` is the name of Snowball's algorithm; "" if there is none.

    `months` has the forms of each month's name, January first. `lists` has words, or phrases with
    commas, by the names of the lists in `languages.toml`, which says what they are.
    """

    script: str
    stemmer: str
    months: tuple[tuple[str, ...], ...]
    lists: Mapping[str, str]

    def words(self, name: str) -> frozenset[str]:
        """Return the folded words of a list, none if the language does not have it."""
        return frozenset(map(fold, self.lists.get(name, "").split()))


_ENTRIES = tomllib.loads(files("memory.search").joinpath("languages.toml").read_text("utf-8"))
_SCRIPTS: dict[str, list[list[int]]] = _ENTRIES.pop("scripts")
LANGUAGES = {
    code: Language(
        each["script"],
        each["stemmer"],
        tuple(tuple(month.split("/")) for month in each["months"].split()),
        each,
    )
    for code, each in _ENTRIES.items()
}
"""Languages by two-letter code."""
_STEMMERS = {each.stemmer: Stemmer(each.stemmer, 0) for each in LANGUAGES.values() if each.stemmer}

UNKNOWN = ""
"""The language of a word that no language claims; such words are cut to their first letters."""

_PREFIX = 5
"""Letters that are kept of a word without a stemmer (`trunc-5` of McNamee & Mayfield 2004)."""

_MAX_LETTERS = 64
"""Only this many letters of a word are used, because the caches count words, not bytes."""

_MAX_CACHED = 65_536  # words in each cache below: at most about 20 MB, whatever people send
_MAX_ASKED_CHARS = 2_400

# Combining marks of Indic and Thai words, which Python's \w does not match.
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0dff\u0e00-\u109f\u1780-\u17ff"
)
_WORD = re.compile(rf"(?:[^\W_]+|[{_MARKS}]+)+")
_ASCII_WORDS = bytes(  # what `_WORD` finds in folded ASCII, in a fourth of the time
    ord(chr(code).lower() if chr(code).isalnum() else " ") for code in range(128)
).ljust(256)
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+)"
)
_LETTERED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# Function characters of Chinese and Japanese: a gram of these alone says nothing.
_UNSPACED_FUNCTION = frozenset(
    "的了是我你他她它们這这那在有和就不也都吗嗎呢吧啊么麼什谁誰哪怎个個很与與把被给給让讓没"
    "はがをにでとものかよねですますたしてなれるっいうあるこそへやら何誰"
)
_ARABIC_FORMS = str.maketrans(
    {"ي": "ی", "ى": "ی", "ك": "ک", "أ": "ا", "إ": "ا", "آ": "ا", "ة": "ه", "\u0640": None}
)
_TO_ARABIC = str.maketrans({"ی": "ي", "ک": "ك"})  # the letters that the Arabic stemmer expects
_HARAKAT = re.compile("[\u064b-\u065f\u0670]")
ALWAYS_UKRAINIAN = frozenset("іїєґ")

_PIECE = re.compile(r"(?s).{1,128}(?!\S)|.{1,128}")
"""A piece of a text, at the end of a word unless the word is longer than any real one.

Python sorts a run of marks over one letter in quadratic time: 1.7 s for a message of 32,768."""


def fold(text: str) -> str:
    """Fold case and unify spellings that people mix: width, Arabic letter forms, ё."""
    if text.isascii():
        return text.lower()
    text = "".join(unicodedata.normalize("NFKC", piece) for piece in _PIECE.findall(text))
    text = text.casefold().replace("ё", "е")
    text = text.replace("i\u0307", "i")  # the Turkish capital İ
    return _HARAKAT.sub("", text.translate(_ARABIC_FORMS))


FUNCTION_WORDS = {code: language.words("words") for code, language in LANGUAGES.items()}
CLAIMED_BY: dict[str, tuple[str, ...]] = {
    word: tuple(code for code, claimed in FUNCTION_WORDS.items() if word in claimed)
    for word in frozenset().union(*FUNCTION_WORDS.values())
}
LANGUAGES_OF_SCRIPT: dict[str, tuple[str, ...]] = {
    script: tuple(code for code, language in LANGUAGES.items() if language.script == script)
    for script in _SCRIPTS
}


def script_of(word: str) -> str:
    """Return the script of a word by its first letter; "" for digits and other scripts."""
    if word.isascii():
        return "" if word[:_MAX_LETTERS].isdigit() else "latin"
    return _script_of(word[:_MAX_LETTERS])


@functools.lru_cache(maxsize=_MAX_CACHED)
def _script_of(word: str) -> str:
    for character in word:
        code = ord(character)
        for script, runs in _SCRIPTS.items():
            if character.isalpha() and any(first <= code <= last for first, last in runs):
                return script
    return ""


def words_of(text: str) -> list[str]:
    """Return the folded words of a text in order; a run of an unspaced script is one word."""
    if text.isascii():
        return text.encode().translate(_ASCII_WORDS).decode().split()
    return _WORD.findall(fold(text))


def asked_words_of(question: str) -> list[str]:
    """Return the words of a question; of a long text those of its beginning and its end."""
    if len(question) > _MAX_ASKED_CHARS:
        last = _MAX_ASKED_CHARS // 3
        question = f"{question[: _MAX_ASKED_CHARS - last]} {question[-last:]}"
    return words_of(question)


_BEGINNING, _DIGIT = 4, re.compile(r"\d")


def beginnings_of(text: str) -> set[str]:
    """Return the numbers and codes of a text, and the first four letters of its other words.

    Forms of one word share these letters. Shorter words say little and are left out.
    """
    words = {*words_of(text)}
    codes = {each for each in words if _DIGIT.search(each)}
    return codes | {each[:_BEGINNING] for each in words - codes if len(each) >= _BEGINNING}


def languages_of(words: Sequence[str], default: dict[str, str]) -> dict[str, str]:
    """Guess the language of a text's words, one for each script in it.

    The language with the most function words wins. Without a winner it is the one of `default`
    (usually what the conversation used so far) or `UNKNOWN`. If only one language has the script,
    it is that one.
    """
    found: dict[str, str] = {}
    claims = Counter(chain.from_iterable([CLAIMED_BY[w] for w in words if w in CLAIMED_BY]))
    for script in sorted({*map(script_of, {*words})}):
        candidates = LANGUAGES_OF_SCRIPT.get(script, ())
        if len(candidates) == 1:
            found[script] = candidates[0]
            continue
        if script == "cyrillic" and any(ALWAYS_UKRAINIAN & set(word) for word in words):
            found[script] = "uk"
            continue
        votes = [claims.get(code, 0) for code in candidates]
        top = max(votes, default=0)
        is_clear = top > 0 and votes.count(top) == 1
        found[script] = candidates[votes.index(top)] if is_clear else default.get(script, UNKNOWN)
    return found


def stem(word: str, language: str) -> str:
    """Return the stem of a word: by Snowball if it has the language, else its first letters.

    All names of one relative have one stem: what is said of mum is found for "my mother".
    """
    return _stem(word[:_MAX_LETTERS], language)


_ONE_NAME = {
    (code, other): name
    for code, each in LANGUAGES.items()
    for name, *others in (names.split("/") for names in fold(each.lists.get("people", "")).split())
    for other in others
}


@functools.lru_cache(maxsize=_MAX_CACHED)
def _stem(word: str, language: str) -> str:
    word = _ONE_NAME.get((language, word), word)
    known = LANGUAGES.get(language)
    if known is None or not known.stemmer:
        return word[:_PREFIX] if word[:1].isalpha() else word
    spelled = word.translate(_TO_ARABIC) if language == "ar" else word
    stemmed = str(_STEMMERS[known.stemmer].stemWord(spelled))
    if stemmed.isascii() or script_of(stemmed) not in {"latin", "greek"}:
        return stemmed  # in other scripts the marks are letters
    return "".join(c for c in unicodedata.normalize("NFD", stemmed) if not unicodedata.combining(c))


TELLING = {stem(word, code) for code, each in LANGUAGES.items() for word in each.words("telling")}
"""The stems of words that ask what was said ("mention"), or whether somebody remembers it."""


def _grams(run: str) -> Iterator[str]:
    """Yield the grams of an unspaced run, without those of function characters alone.

    Ideographs give single characters and pairs, syllables give pairs, letters (Thai and its
    neighbors) give triples. A run that is shorter than its grams is one gram.
    """
    size = min(len(run), 3 if _LETTERED.match(run) else 2)
    for start in range(len(run)):
        single, gram = run[start], run[start : start + size]
        if size > 1 and IDEOGRAPH.match(single) and single not in _UNSPACED_FUNCTION:
            yield single
        if len(gram) == size and not _UNSPACED_FUNCTION.issuperset(gram):
            yield gram


def _pieces(word: str) -> Sequence[tuple[str, bool]]:
    """Cut a word at changes of script; return each piece and whether it is unspaced."""
    if word.isascii() or not _UNSPACED.search(word):
        return ((word, False),)
    pieces = enumerate(_UNSPACED.split(word))  # every other one is unspaced
    return [(piece, at % 2 == 1) for at, piece in pieces if piece]


def terms_of(words: Sequence[str], languages: dict[str, str]) -> list[str]:
    """Return the index terms of a stored text, function words included (their idf is low)."""
    terms: list[str] = []
    for word in words:
        for piece, unspaced in _pieces(word):
            if unspaced:
                terms.extend(_grams(piece))
            else:
                terms.append(stem(piece, languages.get(script_of(piece), UNKNOWN)))
    return terms


@functools.lru_cache(maxsize=4_096)
def date_words(day: date, languages: frozenset[str]) -> tuple[str, ...]:
    """Return the words of a date in these languages, in which a text is found by it; or English."""
    codes = sorted(languages & LANGUAGES.keys()) or ["en"]
    months = (LANGUAGES[code].months[day.month - 1] for code in codes)
    named = map(fold, dict.fromkeys(chain.from_iterable(months)))
    return (str(day.day), *named, str(day.year))


def asked_terms(words: Sequence[str], spoken: dict[str, frozenset[str]]) -> list[tuple[str, ...]]:
    """Return the content terms of a question, each as all forms under which it may be stored.

    The language of a short question is often unclear. So each word is looked up under every
    language that the conversation uses in its script (`spoken`). A function word of the guessed
    language is dropped; without a guess, one of any spoken language.
    """
    guessed = languages_of(words, {})
    asked: dict[tuple[str, ...], None] = {}
    by_script: dict[str, tuple[frozenset[str], Sequence[str]]] = {}
    for word in dict.fromkeys(words):
        for piece, unspaced in _pieces(word):
            if unspaced:
                asked.update(((gram,), None) for gram in _grams(piece))
                continue
            script = script_of(piece)
            if script not in by_script:
                used, guess = spoken.get(script, frozenset()), guessed.get(script, UNKNOWN)
                by_script[script] = frozenset({guess}) if guess else used, sorted(used | {guess})
            likely, codes = by_script[script]
            if likely.isdisjoint(CLAIMED_BY.get(piece, ())):
                asked[tuple(dict.fromkeys([stem(piece, code) for code in codes]))] = None
    return list(asked)


@functools.cache
def _letters_of(script: str) -> frozenset[str]:
    """Return the letters of this script that its function words have, at most about a hundred."""
    words = (FUNCTION_WORDS[code] for code in LANGUAGES_OF_SCRIPT.get(script, ()))
    return frozenset(filter(str.isalpha, "".join(chain.from_iterable(words))))


def slips_of(word: str) -> list[str]:
    """Return the word, and what it may be with a typo ("recieve") or in another spelling ("color").

    A letter (of `_letters_of`) is added or left out, or two neighbors change places. The first two
    letters stay, and no letter becomes another one: Marina is not Marisa.
    """
    letters = _letters_of(script_of(word))
    cuts = [(word[:at], word[at:]) for at in range(2, len(word) + 1)]
    left_out = [before + after[1:] for before, after in cuts]
    swapped = [before + after[1::-1] + after[2:] for before, after in cuts]
    return left_out + swapped + [f"{a}{each}{b}" for a, b in cuts for each in letters]


def content_terms(text: str, languages: dict[str, str]) -> set[str]:
    """Return the index terms of a stored text without those of function words."""
    return {*terms_of([each for each in words_of(text) if each not in CLAIMED_BY], languages)}


def content_forms(text: str) -> set[str]:
    """Return the stems of the content words of a text, each in all languages it may be of."""
    return {form for forms in asked_terms(asked_words_of(text), {}) for form in forms}
