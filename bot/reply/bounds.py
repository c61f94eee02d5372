"""What would cost the parser more than its length is made plain text before it is parsed.

Nested lists are indented by their depth, and each row of a table gets as long as its longest cells:
both grow with the square of the source. So does the time for many empty blocks of code. The marks
are exchanged, so that people still see them.
"""

import re
from itertools import islice

from bot.reply.placeholders import PLACEHOLDERS

_MAX_INDENT = 32
"""Columns of indentation, list marks and quote marks at the beginning of a line."""

_MAX_PADDING = 16_384
"""Characters to which a table may be padded, beyond four times its own length."""

_MAX_FENCES = 200

# At least 9 signs: a tab is up to 4 columns, so what is shorter fits.
_INDENT = re.compile(
    r"^(?:[ \t>]|[-+*](?=[ \t\n]|\Z)|\d{1,9}[.)](?=[ \t\n]|\Z)){9,}+", re.MULTILINE
)
_FENCE = re.compile(r"`{3,}|~{3,}")
_BLANK_LINE = re.compile(r"(\n[ \t]*+\n)")
_MARKS = str.maketrans({mark: PLACEHOLDERS[mark] for mark in "-+*>.)`~"})


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
