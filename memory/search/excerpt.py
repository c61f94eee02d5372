"""The passage of a long text that a question is about: what is shown when the whole is too long.

A pure function of text and question, in the index's own words and stems. What is shown at all, and
how much room it gets, is decided elsewhere.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log1p

from memory.search.words import asked_terms, languages_of, terms_of, words_of
from memory.text.sentences import sentences

LEFT_OUT = "[…]"
"""Stands where a text goes on that is not shown."""

_MAX_CHARS = 40_000
"""Characters of a text in which the passage is sought."""

_SHORT = 20
"""Characters below which a sentence is taken together with the next one."""

_CHUNK = 40
"""A sentence of more than half the room is cut to chunks of so many characters or fewer."""

_MAX_CHARS_A_TOKEN = 16
"""Characters for each unit of the limit, of which a text tells whether it has more than room."""

_QUESTION_CHARS = 2000
"""Of a question longer than this the beginning tells what is sought."""

_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of the text, and which of the question's words it says, by number."""

    start: int
    end: int
    says: frozenset[int]


def relevant_excerpt(text: str, question: str, limit: int, size: Callable[[str], int] = len) -> str:
    """Return the passage of `text` that says most of the question's words, within `limit`.

    `limit` is in units of `size`, characters unless told otherwise, and is never exceeded. A text
    that fits comes back whole, without the blanks around it. Else `LEFT_OUT` stands where something
    was left out, and around the words comes what there is room for, in whole sentences unless they
    are very long. Of a text that says none of the words this is the beginning; too small a limit
    leaves nothing. Takes some 0.3 ms for a thousand characters.
    """
    text = text.strip()
    beginning = text[: limit * _MAX_CHARS_A_TOKEN]
    cost = size(beginning)
    if cost <= limit and (len(beginning) == len(text) or size(text) <= limit):
        return text
    room = limit - size(f"{LEFT_OUT} ") - size(f" {LEFT_OUT}")
    chars = room * len(beginning) // max(1, cost)  # if all were as dense
    if chars <= 0:
        return ""
    pieces = _pieces(text[:_MAX_CHARS], question[:_QUESTION_CHARS], chars)
    start, end = _passage(pieces, chars)
    chars = room * (end - start) // max(1, size(text[start:end]))  # as dense as it is right there
    while chars > 0:
        start, end = _passage(pieces, chars)
        shown = _marked(text, start, end)
        cost = size(shown)
        if cost <= limit:
            return shown
        chars = min(end - start - 1, (end - start) * limit // cost)
    return ""


def _pieces(text: str, question: str, room: int) -> list[_Piece]:
    """Cut the whole text and note what each piece says of the question."""
    spans = [span for sentence in _sentences(text) for span in _chunks(text, *sentence, room)]
    said = [words_of(text[start:end]) for start, end in spans]
    asked = words_of(question)
    languages = languages_of(list(chain.from_iterable(said)), languages_of(asked, {}))
    spoken = {script: frozenset((language,)) for script, language in languages.items()}
    sought = {
        form: number for number, forms in enumerate(asked_terms(asked, spoken)) for form in forms
    }
    says = {
        word: frozenset(sought[term] for term in terms_of([word], languages) if term in sought)
        for word in set(chain.from_iterable(said))
    }
    return [
        _Piece(start, end, frozenset().union(*(says[word] for word in words)))
        for (start, end), words in zip(spans, said, strict=True)
    ]


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = end = 0
    for sentence in sentences(text):
        end += len(sentence)
        if end - start >= _SHORT:
            yield start, end
            start = end
    if start < end:
        yield start, end


def _chunks(text: str, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    """Yield a sentence whole, or in parts that end at blanks, or else between characters."""
    most = end - start if end - start <= room // 2 else max(1, min(_CHUNK, room // 2))
    while start < end:
        stop = min(start + most, end)
        blank = text.rfind(" ", start, stop) if stop < end else -1
        if blank > start:
            stop = blank + 1
        while stop < end and _clings(text, stop):
            stop += 1
        yield start, stop
        start = stop


def _clings(text: str, at: int) -> bool:
    """Say whether a reader sees this character and the one before it as one."""
    return _JOINER in text[at - 1 : at + 1] or unicodedata.category(text[at]).startswith("M")


def _passage(pieces: Sequence[_Piece], room: int) -> tuple[int, int]:
    """Return where the best `room` characters begin and end: the core, and what fits around it."""
    first, last = _core(pieces, room)
    start, end = pieces[first].start, pieces[last].end
    grows = True
    while grows:
        grows = False
        if last + 1 < len(pieces) and pieces[last + 1].end - start <= room:
            last, grows = last + 1, True
            end = pieces[last].end
        if first and end - pieces[first - 1].start <= room:
            first, grows = first - 1, True
            start = pieces[first].start
    return start, min(end, start + room)


def _core(pieces: Sequence[_Piece], room: int) -> tuple[int, int]:
    """Return the first and the last of the neighbouring pieces that say most within `room`.

    A word counts the more the fewer pieces say it, and its n-th mention 1/n² of that. Where nothing
    is said this is the first piece. One piece is taken even when it alone has no room.
    """
    saying = Counter(chain.from_iterable(piece.says for piece in pieces))
    weights = {number: log1p(len(pieces) / count) for number, count in saying.items()}
    mentions: Counter[int] = Counter()
    first, score = 0, 0.0
    best, core = 0.0, (0, 0)
    for last, piece in enumerate(pieces):
        for number in piece.says:
            mentions[number] += 1
            score += weights[number] / mentions[number] ** 2
        while first < last and (not pieces[first].says or piece.end - pieces[first].start > room):
            for number in pieces[first].says:
                score -= weights[number] / mentions[number] ** 2
                mentions[number] -= 1
            first += 1
        if score > best + 1e-9:  # sums of floats: equal ones may differ by less
            best, core = score, (first, last)
    return core


def _marked(text: str, start: int, end: int) -> str:
    passage = text[start:end].strip()
    before = LEFT_OUT if start else ""
    after = LEFT_OUT if end < len(text) else ""
    return " ".join(part for part in (before, passage, after) if part) if passage else ""
