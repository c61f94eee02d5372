"""Cuts a document into passages, which are found and cited one by one.

A passage holds whole sentences as far as they fit. Passages do not overlap: the index lets words of
neighboring passages count too, so text at an edge is found all the same.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from memory.text.sentences import cut_before, sentences
from memory.text.tokens import TokenCounter

PASSAGE_TOKENS = 220
"""One or two paragraphs: about one thing, and short enough for several in a prompt."""

_CHARS_PER_TOKEN = 16
"""The search for a cut reads at most this many characters per token."""

_HEADING = re.compile(r"^#{1,6}[ \t]([^\n]+)", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_MAX_HEADING_CHARS = 80
_UNSEEN = re.compile(r"[^\S\n\t ]|[\x00-\x08\x0e-\x1f\x7f\u00ad\ufeff\ufffe\uffff]")
_BLANKS = re.compile(r"[ \t]{2,}")
_EMPTY_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document: a page, or the text below a heading."""

    text: str
    place: str = ""  # names it for people ("page 3")
    said_at: float = 0  # when it was said (Unix seconds), 0 for what is no talk


def by_heading(text: str) -> list[Section]:
    """Return the sections of Markdown; the first one is the text before any heading."""
    without_code = _FENCE.sub(lambda fence: " " * len(fence[0]), text)
    headings = list(_HEADING.finditer(without_code))
    edges = [*(heading.start() for heading in headings), len(text)]
    below = (
        Section(text[heading.start() : end], heading[1].strip(" \t#")[:_MAX_HEADING_CHARS])
        for heading, end in zip(headings, edges[1:], strict=True)
    )
    return [Section(text[: edges[0]]), *below]


def passages(
    document: Iterable[Section], counter: TokenCounter, max_tokens: int = PASSAGE_TOKENS
) -> list[Section]:
    """Return the passages of a document in order, none empty, each of at most `max_tokens`.

    A passage never spans two sections. A million characters take about a second.
    """
    return [
        replace(section, text=passage)
        for section in document
        for passage in _packed(_tidy(section.text), counter, max_tokens)
    ]


def _tidy(text: str) -> str:
    """Return the text without control characters, repeated blanks and repeated empty lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _BLANKS.sub(" ", _UNSEEN.sub(lambda sign: " " if sign[0].isspace() else "", text))
    text = text.encode("utf-8", "replace").decode()  # half an emoji cannot be stored or sent
    return _EMPTY_LINES.sub("\n\n", text)


def _packed(text: str, counter: TokenCounter, max_tokens: int) -> Iterator[str]:
    passage = ""
    for piece in _pieces(text, counter, max_tokens):
        longer = passage + piece
        if passage and counter.count(longer.strip()) > max_tokens:
            if passage.strip():
                yield passage.strip()
            longer = piece
        passage = longer
    if passage.strip():
        yield passage.strip()


def _pieces(text: str, counter: TokenCounter, max_tokens: int) -> Iterator[str]:
    """Yield sentences; one that is too long for a passage is yielded in parts."""
    for sentence in sentences(text):
        rest = sentence
        max_chars = max_tokens * _CHARS_PER_TOKEN
        while len(rest) > max_chars or counter.count(rest.strip()) > max_tokens:
            at = _longest_part(rest, counter, max_tokens)
            yield rest[:at]
            rest = rest[at:]
        yield rest


def _longest_part(text: str, counter: TokenCounter, max_tokens: int) -> int:
    """Return where to cut off the longest first part that fits (by bisection)."""
    fits, too_long = 1, min(len(text), max_tokens * _CHARS_PER_TOKEN) + 1
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if counter.count(text[:middle].strip()) <= max_tokens:
            fits = middle
        else:
            too_long = middle
    return cut_before(text, fits)
