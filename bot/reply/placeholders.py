"""Placeholders: Unicode noncharacters in place of characters that the parser must not interpret.

Each is one UTF-16 unit, as the character it stands for, so offsets stay valid. Markup that would
cost the parser more than its length is replaced as well. Nested lists are indented by their depth,
and each row of a table becomes as long as its longest cells: both grow with the square of the
source. So does the time for many empty code blocks. People still see the marks.
"""

import re
from itertools import islice

from bot.reply.utf16 import well_formed

_REPLACED = "<|$[~\\_^{}`\n -+*>.)"
PLACEHOLDERS = {char: chr(0xFDD0 + number) for number, char in enumerate(_REPLACED)}
"""The placeholder of each character that can be replaced."""

_ORIGINALS = {ord(placeholder): char for char, placeholder in PLACEHOLDERS.items()}
_ALL = str.maketrans(PLACEHOLDERS)
# Text from outside never holds our placeholders: Unicode does not allow them in interchange.
_CLEANED = dict.fromkeys(range(0xFDD0, 0xFDF0), "\ufffd")

_MAX_INDENT = 32
"""Columns of indentation, list marks and quote marks at the beginning of a line."""

_MAX_PADDING = 16_384
"""Characters to which a table may be padded, beyond four times its own length."""

_MAX_FENCES = 200

# At least 9 signs: a tab is up to 4 columns, so fewer signs always fit.
_INDENT = re.compile(
    r"^(?:[ \t>]|[-+*](?=[ \t\n]|\Z)|\d{1,9}[.)](?=[ \t\n]|\Z)){9,}+", re.MULTILINE
)
_FENCE = re.compile(r"`{3,}|~{3,}")
_BLANK_LINE = re.compile(r"(\n[ \t]*+\n)")
_MARKS = str.maketrans({mark: PLACEHOLDERS[mark] for mark in "-+*>.)`~"})


def clean(text: str) -> str:
    """Return text that UTF-16 can hold, with plain newlines and without placeholders.

    A lone surrogate becomes U+FFFD.
    """
    text = well_formed(text)
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CLEANED)


def opaque(text: str) -> str:
    """Replace every character that the parser could interpret."""
    return text.translate(_ALL)


def restore(text: str) -> str:
    """Put the original characters back; the number of UTF-16 units stays the same."""
    return text.translate(_ORIGINALS)


def bounded(markdown: str) -> str:
    """Return clean text in which no list, quote or table is too deep or too wide for the parser."""
    blocks = _BLANK_LINE.split(_few_fences(_INDENT.sub(_shallow, markdown)))
    return "".join(map(_without_huge_table, blocks))


def _few_fences(markdown: str) -> str:
    first = next(islice(_FENCE.finditer(markdown), _MAX_FENCES, None), None)
    if first is None:
        return markdown
    rest = _FENCE.sub(lambda fence: fence[0].translate(_MARKS), markdown[first.start() :])
    return markdown[: first.start()] + rest


def _shallow(indent: re.Match[str]) -> str:
    marks, column = indent[0], 0
    for at, char in enumerate(marks):
        column += 4 - column % 4 if char == "\t" else 1
        if column > _MAX_INDENT:
            return marks[:at] + marks[at:].translate(_MARKS)
    return marks


def _without_huge_table(block: str) -> str:
    if "|" not in block:
        return block
    lines = block.split("\n")
    if len(lines) * max(map(len, lines)) <= 4 * len(block) + _MAX_PADDING:
        return block
    return block.replace("|", PLACEHOLDERS["|"])
