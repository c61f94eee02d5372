"""Which replies are sent as a rich message of Telegram, and in which Markdown.

Telegram shows tables and formulas of a rich message properly. It gets the Markdown of the model as
it is, so what `render` escapes must not be in it: links that hide their address, images
that are loaded from anywhere, and HTML. Not even in code, because Telegram may see code in other
places than we do.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from bot.reply.parts import Part
from bot.reply.source import FORMULA_MARKS, TOKEN, formula_in

_MAX_COLUMNS = 20
_MAX_LINES = 240
"""Telegram takes 500 blocks, and a line is at most two: an entry of a list, and its text."""

_NOT_RAW = re.compile(r"!\[|\]\(|\]\[|\]:|<[A-Za-z/!?]|tg:", re.IGNORECASE)
_RULE = frozenset("|-: \t")


def is_worth_rich(markdown: str, parts: Sequence[Part]) -> bool:
    """Return whether a reply has a table or a block formula, and nothing that must not be sent raw.

    `parts` show the reply without a rich message. A reply with a file stays as it is.
    """
    if not ("|" in markdown or "$$" in markdown or "\\[" in markdown):
        return False
    if any(part.file for part in parts) or markdown.count("\n") >= _MAX_LINES:
        return False
    text = TOKEN.sub(lambda token: "" if token.lastgroup == "code" else token[0], markdown)
    columns = _columns(text.split("\n"))
    blocks = (t for t in TOKEN.finditer(markdown) if FORMULA_MARKS.get(t.lastgroup or "") == "$$")
    is_fit = max(columns, default=0) <= _MAX_COLUMNS and not _NOT_RAW.search(markdown)
    return is_fit and (any(map(formula_in, blocks)) or bool(columns))


def rich_markdown(markdown: str) -> str:
    """Return the Markdown with dollars around all formulas, and with all other dollars escaped."""
    return TOKEN.sub(_with_dollars, markdown)


def _with_dollars(token: re.Match[str]) -> str:
    if formula := formula_in(token):
        mark = FORMULA_MARKS[token.lastgroup or ""]
        return f"{mark}{formula.strip()}{mark}"
    is_money = token.lastgroup in ("literal", "dollar", "dollars")
    return token[0].replace("$", "\\$") if is_money else token[0]


def _columns(lines: Sequence[str]) -> list[int]:
    """Return the number of columns of each table: its second line is a rule."""
    rules = [
        rule.strip().strip("|")
        for row, rule in pairwise(lines)
        if "|" in row and "-" in rule and "|" in rule and _RULE.issuperset(rule)
    ]
    return [rule.count("|") + 1 for rule in rules]
