"""The part of an unfinished reply that will look the same in the finished one.

Markdown is cut before whatever may still change: the last word, an open link or emphasis, a table.
"""

import re

from bot.reply.fences import CodeBlock, code_blocks
from memory.text.characters import character_start

_MAX_WORD = 32
"""A longer run without a space is text of a script without spaces."""
_MAX_OPEN = 300
"""A mark that is not closed within this many characters counts as text."""

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_TABLE_LINE = re.compile(r"^[ \t>]*\|", re.MULTILINE)
_ONLY_MARKS = re.compile(r"(?:^|\n)[ \t]*(?:[#>*+=|~_.)-]|\d)+[ \t]*$")
_TOKEN = re.compile(
    r"""
    (?P<ticks> `+ )
  | (?P<link> \[ (?: \\. | [^\[\]\n] )* \] \( [^()\n]* (?: \([^()\n]*\) [^()\n]* )* \) )
  | (?P<open> !?\[ (?= [^\[\]]* \Z | [^\[\]\n]* \] (?: \( [^()]* )? \Z ) | \\[(\[] )
  | (?P<close> \\[)\]] )
  | \\.                                                  # an escaped character
  | (?P<mark> \*{1,3} | _{1,3} | ~~ | \|\| | \$\$? )
    """,
    re.VERBOSE,
)


def settled(markdown: str) -> str:
    """Return the longest safe beginning of an unfinished text; "" if there is none."""
    text = markdown[: _last_word(markdown)]
    begins = 0
    for block in code_blocks(text):
        if not block.is_closed:
            return _of_code(text, block)
        begins = block.end
    for blank in _BLANK_LINE.finditer(text, begins):
        begins = blank.end()
    text = text[: _first_open(text, begins)].rstrip()
    return _ONLY_MARKS.sub("", text).rstrip()


def _last_word(text: str) -> int:
    """Return where the last word begins that may not be whole."""
    space = max(text.rfind(" "), text.rfind("\n"))
    tail = text[space + 1 :]
    if len(tail) > _MAX_WORD and not tail.isascii():
        return character_start(text, len(text) - 1)
    return character_start(text, max(0, space))


def _of_code(text: str, block: CodeBlock) -> str:
    """Return an open code block up to its last whole line; the renderer closes it."""
    end = text.rfind("\n")
    if not text[block.code_start : max(end, 0)].strip():
        return _ONLY_MARKS.sub("", text[: block.start].rstrip()).rstrip()
    return text[:end]


def _first_open(text: str, begins: int) -> int:
    """Return where the first mark of the last paragraph stands that is still open."""
    if table := _TABLE_LINE.search(text, begins):
        return table.start()
    still_open: dict[str, int] = {}
    in_code = ""
    for token in _TOKEN.finditer(text, begins):
        kind, mark = token.lastgroup, token[0]
        if in_code:
            if mark == in_code:
                in_code = ""
                still_open.pop(mark, None)
        elif kind == "ticks":
            in_code = mark
            still_open[mark] = token.start()
        elif kind == "open":
            still_open.setdefault("[", token.start())
        elif kind == "close":
            still_open.pop("[", None)
        elif kind == "mark":
            _toggle(still_open, text, token)
    near = [at for at in still_open.values() if len(text) - at <= _MAX_OPEN]
    return min(near, default=len(text))


def _toggle(still_open: dict[str, int], text: str, token: re.Match[str]) -> None:
    mark, start, end = token[0], token.start(), token.end()
    before, after = text[start - 1 : start], text[end : end + 1]
    if mark in still_open and before and not before.isspace():
        del still_open[mark]
    elif after and not after.isspace() and not before.isalnum():
        is_price = mark == "$" and after.isdigit()
        if not is_price:
            still_open.setdefault(mark, start)
