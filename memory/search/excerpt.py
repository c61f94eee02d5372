"""Finds the passage of a long text that a question is about. Pure.

It compares words and stems as the index does. The caller decides how long a passage may be.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log1p

from memory.search.words import asked_terms, languages_of, terms_of, words_of
from memory.text.sentences import character_start, sentences

LEFT_OUT = "[…]"  # stands in place of text that is left out

_MAX_CHARS = 40_000  # the passage is taken from this many first characters of a text

_MIN_SENTENCE_CHARS = 20  # a shorter sentence is joined to the next one

_MAX_CHUNK_CHARS = 40
"""A sentence that needs more than half the room is cut into chunks of this many characters."""

_MAX_CHARS_A_TOKEN = 16
"""A text of more characters per unit of the limit is too long, whatever they cost."""

_MAX_QUESTION_CHARS = 2000  # the rest of a longer question is ignored


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the text, and the numbers of the question's words that it contains."""

    start: int
    end: int
    words: frozenset[int]


class Asked:
    """A question; words are looked up once for all texts in the same languages."""

    def __init__(self, question: str) -> None:
        self.words = words_of(question[:_MAX_QUESTION_CHARS])
        self.languages = languages_of(self.words, {})
        # By the languages of a text: the index of each form of our words; the indexes of its words.
        self.known = dict[object, tuple[dict[str, int], dict[str, frozenset[int]]]]()


def relevant_excerpt(text: str, asked: Asked, limit: int, size: Callable[[str], int] = len) -> str:
    """Return the passage of `text` with most of the question's words, of at most `limit`.

    `size` measures text in the units of `limit`; the default is characters. A text that fits is
    returned whole, stripped. Otherwise `LEFT_OUT` marks what is left out, and the passage is filled
    up with whole sentences around the words; very long sentences are cut. Without any word of the
    question it is the beginning of the text. "" if the limit is too small. Takes about 0.3 ms for
    a thousand characters.
    """
    text = text.strip()
    beginning = text[: limit * _MAX_CHARS_A_TOKEN]
    cost = size(beginning)
    if cost <= limit and (len(beginning) == len(text) or size(text) <= limit):
        return text
    room = limit - size(f"{LEFT_OUT} ") - size(f" {LEFT_OUT}")
    chars = room * len(beginning) // max(1, cost)  # if all of the text cost as much
    if chars <= 0:
        return ""
    pieces = _pieces(text[:_MAX_CHARS], asked, chars)
    start, end = _passage(pieces, chars)
    chars = room * (end - start) // max(1, size(text[start:end]))  # what this part costs
    while chars > 0:
        start, end = _passage(pieces, chars)
        passage = text[start:end].strip()
        before, after = LEFT_OUT if start else "", LEFT_OUT if end < len(text) else ""
        shown = " ".join(filter(None, (before, passage, after))) if passage else ""
        cost = size(shown)
        if cost <= limit:
            return shown
        chars = min(end - start - 1, (end - start) * limit // cost)
    return ""


def _pieces(text: str, asked: Asked, room: int) -> list[_Piece]:
    spans = [span for sentence in _sentences(text) for span in _chunks(text, *sentence, room)]
    found = [words_of(text[start:end]) for start, end in spans]
    languages = languages_of(list(chain.from_iterable(found)), asked.languages)
    key = frozenset(languages.items())
    if key not in asked.known:
        terms = asked_terms(asked.words, {script: frozenset((code,)) for script, code in key})
        asked.known[key] = {form: at for at, forms in enumerate(terms) for form in forms}, {}
    sought, numbers = asked.known[key]
    for word in {*chain.from_iterable(found)} - numbers.keys():
        numbers[word] = frozenset(sought[t] for t in sought.keys() & terms_of([word], languages))
    return [
        _Piece(start, end, frozenset().union(*map(numbers.__getitem__, words)))
        for (start, end), words in zip(spans, found, strict=True)
    ]


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = end = 0
    for sentence in sentences(text):
        end += len(sentence)
        if end - start >= _MIN_SENTENCE_CHARS:
            yield start, end
            start = end
    if start < end:
        yield start, end


def _chunks(text: str, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    size = end - start if end - start <= room // 2 else max(1, min(_MAX_CHUNK_CHARS, room // 2))
    while start < end:
        stop = min(start + size, end)
        blank = text.rfind(" ", start, stop) if stop < end else -1
        if blank > start:
            stop = blank + 1
        while stop < end and character_start(text, stop, start) < stop:
            stop += 1
        yield start, stop
        start = stop


def _passage(pieces: Sequence[_Piece], room: int) -> tuple[int, int]:
    """Return start and end of the best `room` characters: the core and what fits around it."""
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
    """Return the first and last of the adjacent pieces that match best within `room`.

    A word counts more if fewer pieces contain it; its n-th mention counts 1/n². Without any match
    this is the first piece. One piece is returned even if it alone is too long.
    """
    uses = Counter(chain.from_iterable(piece.words for piece in pieces))
    weights = {number: log1p(len(pieces) / count) for number, count in uses.items()}
    mentions: Counter[int] = Counter()
    first, score = 0, 0.0
    best, core = 0.0, (0, 0)
    for last, piece in enumerate(pieces):
        for number in piece.words:
            mentions[number] += 1
            score += weights[number] / mentions[number] ** 2
        while first < last and (not pieces[first].words or piece.end - pieces[first].start > room):
            for number in pieces[first].words:
                score -= weights[number] / mentions[number] ** 2
                mentions[number] -= 1
            first += 1
        if score > best + 1e-9:  # equal sums of floats may differ by less
            best, core = score, (first, last)
    return core
