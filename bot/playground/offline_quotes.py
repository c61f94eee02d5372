"""Finds what answers a question among what the prompt and the tools remember, and quotes it whole.

A fact, a message or a passage of a document is scored by the meanings that it shares with the
question. Rare meanings count more. Nothing is put into other words.

Words of everyday talk that mean the same, also in another language, have one meaning; every other
word is its own stem. `offline_words.txt` has the list.
"""

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Literal

from bot.language.catalogue import Catalogue
from memory.search.question import asks_when, tells_time
from memory.search.words import (
    FUNCTION_WORDS,
    LANGUAGES,
    fold,
    languages_of,
    script_of,
    slips_of,
    stem,
    terms_of,
    words_of,
)

_LISTED = tomllib.loads(files("bot.playground").joinpath("offline_model.toml").read_text("utf-8"))
SAYS: dict[str, dict[str, str]] = _LISTED.pop("says")  # the offline model's sentences by language
_LISTED["changes"] += f"|{_LISTED['moved']}"
_LISTED["corrects"] += f"|{_LISTED['moved']}|{_LISTED['wrong']}"
SAID = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _LISTED.items()}
_MESSAGE = re.compile(r"\A(?:\[([^\]\n]+)\]|-) (?:#\d+ )?(?:\[…[^\]\n]*\] )?([^:\n]{1,80}): (.*)")
"""A date, or a dash for that of the line above; a number; a mark of a shortened text; a speaker."""
_FACT = re.compile(r"\A#(\d+) \[([^\]\n]+)\] (.*)")
_PASSAGE = re.compile(r"\A\[([^\]\n,]+\.\w{1,8})(?:, [^\]\n]*)?\] (.*)")
_SYNOPSIS_LABELS = {"Request", "Done", "Result", "Behaviour", "Emotions", "Preferences"}
_CATALOGUE = Catalogue()
_ASSISTANT = "You (assistant)"
_ENDED = re.compile(r"\[until [^\]]*\]\Z")
_ASKS = re.compile(r"\A[^.!。！]*[?？؟]\s*")
_CLAUSE = re.compile(r"[^.,;:!。！،]++[.。\s]*+")
_WORDS = re.compile(r"[\w']+")
_LETTERS_OF_SLIPS, _MAX_SLIPS = range(5, 30), 8
"""Letters of a word that may have a slip, and how many words of a question are tried."""
_MAX_ASKING_WORDS = 6  # a longer clause without "?" tells something: "When my son was born, I ..."
_MIN_WORDS = 5  # a quote of fewer words says little without what stands beside it
_MIN_SHARE = 0.34  # share of a question's meanings, by weight, that an answer must have
_SURE = 0.75
_CLOSE = 0.85  # share of the best score that a further quote must reach
_MAX_QUOTES = 3
_OF_NEIGHBOR = 0.4
_OF_PASSAGE = 0.7
_OF_MEANING = 0.9
_BONUS = 0.1


@dataclass(eq=False, slots=True)
class Remembered:
    """Something remembered."""

    kind: Literal["fact", "said", "passage", "earlier"]  # the key of what says where it is from
    when: str  # its date, or its file
    text: str
    by_person: bool = True
    group: list["Remembered"] = field(default_factory=list)  # what stands beside it, and itself
    id: int = 0  # of a fact

    @property
    def is_answer(self) -> bool:
        """Whether it can be quoted: somebody said it, it holds, and it does not only ask."""
        is_statement = not (tells_nothing(self.text) or SAID["forget"].search(self.text))
        return self.by_person and is_statement and not _ENDED.search(self.text)

    def beside(self, tells: "Callable[[Remembered], bool]") -> "Remembered | None":
        """Return what the person said next or else before, first what `tells`; None if alone."""
        at = self.group.index(self) if self in self.group else 0
        others = [*self.group[at + 1 :], *reversed(self.group[:at])]
        others = [each for each in others if each.is_answer]
        return next(filter(tells, others), next(iter(others), None))


def tells_nothing(text: str) -> bool:
    """Return whether a text is a nod or a question.

    A question has a question mark, or is one short clause that begins like a question.
    """
    begins = SAID["question"].match(text) and not SAID["tells"].match(text)
    is_short = _CLAUSE.fullmatch(text) and len(words_of(text)) <= _MAX_ASKING_WORDS
    return bool((begins and is_short) or _ASKS.fullmatch(text) or SAID["nod"].fullmatch(text))


def remembered(section: str) -> list[Remembered]:
    """Return the facts, messages and passages of a section as the prompt writes them."""
    found: list[Remembered] = []
    group: list[Remembered] = []
    latest: Remembered | None = None
    for line in section.splitlines():
        if line.startswith("  ") and latest:
            latest.text += f"\n{line.strip()}"
            continue
        latest = None
        if fact := _FACT.match(line):
            latest = Remembered("fact", fact[2], fact[3], id=int(fact[1]))
        elif passage := _PASSAGE.match(line):
            latest = Remembered("passage", passage[1], passage[2].lstrip("# "))
        elif (said := _MESSAGE.match(line)) and said[2] not in _SYNOPSIS_LABELS:
            when = said[1] or (group[-1].when if group else "")
            group = group if not said[1] else []
            latest = Remembered("said", when, said[3], said[2] != _ASSISTANT, group)
            group.append(latest)
        if latest:
            found.append(latest)
    return found


class Quotes:
    """What answers a question, best first; in `sure` if nothing better need be looked for."""

    def __init__(self, question: str, memories: Sequence[Remembered]) -> None:
        self._question = question
        self._known = {each: meanings(each.text) for each in memories}
        wanted = readable(meanings(question), [m.text for m in memories if m.is_answer])
        self._wanted = dict(_without_slips(wanted, self._known.values()))
        counts = Counter(m for known in self._known.values() for m in set(known.values()))
        self._weights = {
            word: math.log(2 + len(memories) / (1 + counts[meaning]))
            for word, meaning in self._wanted.items()
        }
        old = outdated(memories)
        answers = (each for each in memories if each.is_answer and each.text not in old)
        scores = {each: self._score(each) for each in answers}
        ranked = sorted(scores, key=lambda each: -scores[each])
        best = scores[ranked[0]] if ranked else 0
        known = self._known[ranked[0]] if ranked else {}
        is_sure = best >= _SURE and any(w in known for w in self._wanted if w != NUMBER)
        least = max(_MIN_SHARE, _CLOSE * best)
        found: dict[str, Remembered] = {}
        for each in ranked:
            if scores[each] >= least:
                found.setdefault(each.text, each)
        self._found = [*found.values()][:_MAX_QUOTES]
        self.sure = self._found if is_sure else []

    def lines(self, language: str) -> Iterator[str]:
        """Yield the quotes (see `quoted`)."""
        return quoted(self._found, language, self._tells, is_whole=bool(self.sure))

    def _score(self, memory: Remembered) -> float:
        """Return the share of the question that a memory has, with what speaks for it besides."""
        total = sum(self._weights.values())
        own = self._share(self._known[memory])
        if not own:
            return 0
        near = dict(self._known[memory])
        for each in memory.group:
            near |= self._known.get(each, {})
        if not self._share(near, beyond=NUMBER):  # a number alone says nothing of what is asked
            return 0
        lent = self._share(near) - own
        is_news = 3 * bool(SAID["corrects"].search(memory.text))  # a correction comes first
        bonus = _BONUS * ((memory.kind == "fact") + self._names(memory) + is_news)
        share = (own + _OF_NEIGHBOR * lent) / total + bonus
        return share * _OF_PASSAGE if memory.kind == "passage" else share

    def _share(self, known: Mapping[str, str], beyond: str = "") -> float:
        """Return the weight of what is known; an equal word counts more than an equal meaning."""
        meant = set(known.values())
        return sum(
            weight if word in known else _OF_MEANING * weight
            for word, weight in self._weights.items()
            if word != beyond and (word in known or self._wanted[word] in meant)
        )

    def _tells(self, memory: Remembered) -> bool:
        asks_number = NUMBER in self._wanted
        return (asks_number and NUMBER in self._known.get(memory, {})) or self._names(memory)

    def _names(self, memory: Remembered) -> bool:
        if not asks_for_name(self._question):
            return False
        if asks_for_name(memory.text):
            return True
        words = _WORDS.findall(memory.text)
        wanted = set(self._wanted.values())
        pairs = zip(words, [*words[1:], ""], strict=True)
        return any(
            following[:1].isupper() and not wanted.isdisjoint(meanings(word).values())
            for word, following in pairs
            if content_words(word)
        )


def quoted(
    memories: Sequence[Remembered],
    language: str,
    tells: Callable[[Remembered], bool] = lambda _: False,
    *,
    is_whole: bool = False,
) -> Iterator[str]:
    """Yield each memory whole, with what stands beside it unless it says all, and its date."""
    shown: set[int] = set()
    for each in memories:
        if id(each) in shown:
            continue
        texts = [each.text]
        beside = each.beside(tells)
        is_short = len(words_of(each.text)) < _MIN_WORDS
        if beside and (is_short or (not is_whole and (len(memories) == 1 or not shown))):
            texts = [m.text for m in sorted((each, beside), key=each.group.index)]
            shown.add(id(beside))
        shown.add(id(each))
        where = SAYS[language][each.kind].format(_translated(each.when, language))
        marks = SAYS[language]["quote"]
        yield f"{where}: " + " ".join(marks.format(short(text)) for text in texts)


def _translated(when: str, language: str) -> str:
    day, *more = when.split(", ")
    own, english = (SAYS[code]["dates"].split() for code in (language, "en"))
    named = dict(zip(english, own, strict=True)).get(day, day).replace("_", " ")
    with suppress(ValueError):  # it is no date
        said_on = datetime.strptime(day, "%d %B %Y").replace(tzinfo=UTC)
        named = _CATALOGUE.day(language, said_on.timestamp())
    return ", ".join([named, *(m for m in more if ":" in m or language == "en")])


def outdated(memories: Sequence[Remembered]) -> set[str]:
    """Return the texts of statements that a later one corrects.

    What is learned stands first, so a text counts from the last place where it stands.
    """
    texts = [*dict.fromkeys(each.text for each in reversed(memories) if each.is_answer)]
    right = [(at, text) for at, text in enumerate(texts) if SAID["corrects"].search(text)]
    pairs = ((new, old) for at, new in right for old in texts[at + 1 :])
    return {old for new, old in pairs if corrects(new, old)}


def corrects(new: str, old: str) -> bool:
    """Return whether a text corrects another: it says so, and has half of the other's words."""
    said = (new, SAID["wrong"].sub("", old))  # "that's wrong" says nothing of what is right
    has, had = (set(meanings(each).values()) - {NUMBER} for each in said)
    return bool(SAID["corrects"].search(new)) and 2 * len(has & had) >= max(1, len(had))


def _without_slips(
    wanted: dict[str, str], known: Iterable[Mapping[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield each word with its meaning; an unknown one becomes a known one that it is a slip of."""
    words = {word: meaning for each in known for word, meaning in each.items()}
    tries = _MAX_SLIPS
    for asked, meaning in wanted.items():
        word = asked
        if tries and word == meaning and word not in words and len(word) in _LETTERS_OF_SLIPS:
            word = next((each for each in slips_of(word) if each in words), word)
            tries -= 1
        yield word, words.get(word, meaning)


def short(text: str, max_chars: int = 300) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= max_chars else f"{text[:max_chars].rstrip()} …"


_CODES = ("en", "de", "ru", "es", "fa", "fr", "it", "pt", "uk", "id", "tr")
_NAME = "~"
NUMBER = "?"  # what a question for a number asks for, and what a text with a number has
_NONE = "-"
_PERSIAN_ENDINGS = ["هایم", "های", "ها", "یم", "ام", "اش", "ای", "ی", "م", "ت", "ش"]
"""Of "my", "your" and the plural: there is no stemmer for Persian."""


class _Meanings:
    """The list, by the stem of each word; `words` has those of each meaning and language."""

    def __init__(self) -> None:
        self.of_stem: dict[tuple[str, str], str] = {}
        self.words: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        self.phrases: dict[str, str] = {}
        self.empty = frozenset[str]()
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
        for code, part in zip(_CODES, parts, strict=False):
            for word in map(fold, part.split()):
                if "_" in word:
                    self.phrases[word.replace("_", " ")] = meaning
                    continue
                self.of_stem.setdefault((code, stem(word, code)), meaning)
                self.of_stem.setdefault((code, f"={word}"), meaning)
                self.words[meaning, code].setdefault(stem(word, code), word)

    def of(self, word: str, code: str) -> dict[str, str]:
        """Return the meaning of a word by its stem."""
        stemmed = stem(word, code)
        ends = [word.removesuffix(end) for end in _PERSIAN_ENDINGS if code == "fa"]
        exact = self.of_stem.get((code, f"={word}"))
        if exact and exact != self.of_stem[code, stemmed]:
            return {word: exact}  # "hermano" has the stem of "hermana"
        known = (each for each in (stemmed, *ends) if (code, each) in self.of_stem)
        return {each: self.of_stem[code, each] for each in islice(known, 1)}


MEANINGS = _Meanings()
_PHRASES = re.compile(rf"\b(?:{'|'.join(map(re.escape, MEANINGS.phrases))})\b")


def content_words(text: str) -> list[str]:
    """Return the folded words of `text` in order, without words that carry no meaning."""
    words = words_of(text)
    spoken = {*languages_of(words, {}).values()} & SAYS.keys() or {*_CODES}
    empty = MEANINGS.empty.union(*(FUNCTION_WORDS[code] for code in spoken))
    return [word for word in words if word not in empty]


def asks_for_name(text: str) -> bool:
    """Return whether a text asks or says what somebody or something is called."""
    return any(meaning == _NAME for _, meaning in _both(words_of(text)))


@lru_cache(2_000)  # each answer reads much of what an earlier one has read
def meanings(text: str) -> Mapping[str, str]:
    """Return what the content words of a text mean, by their stems, in order."""
    words = words_of(text)
    joined = " ".join(words)
    phrases = {found: MEANINGS.phrases[found] for found in _PHRASES.findall(joined)}
    found = dict(_both(content_words(_PHRASES.sub(" ", joined))))
    has_number = NUMBER in found.values() or asks_when(text) or any(map(tells_time, words))
    told = {word: meaning for word, meaning in found.items() if meaning not in (_NAME, NUMBER)}
    return phrases | told | ({NUMBER: NUMBER} if has_number else {})


def readable(wanted: Mapping[str, str], texts: Sequence[str]) -> dict[str, str]:
    """Leave out words that no text can have: without a meaning, in a script of none of them."""
    scripts = {script_of(word) for text in texts for word in words_of(text)}
    return {
        word: meaning
        for word, meaning in wanted.items()
        if meaning != word or word == NUMBER or script_of(word) in scripts
    }


def alike(meaning: str, language: str) -> list[str]:
    """Return the words of a meaning in one language, one of each stem; itself if it has none."""
    return list(MEANINGS.words[meaning, language].values()) or [meaning.removeprefix("=")]


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
        # A language that lists the word itself comes first ("habite" has the stem of "habitación").
        of_script.sort(key=lambda code: (code != clear, (code, f"={word}") not in MEANINGS.of_stem))
        codes = [clear] if clear in _CODES[:6] else of_script  # the other lists are short
        found = next(filter(None, (MEANINGS.of(word, code) for code in codes)), {})
        stemmed = stem(word, clear or codes[0]) if codes else word
        yield from (found or {stemmed: stemmed}).items()
