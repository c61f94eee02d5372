"""Finds the code blocks of a Markdown text that stand between fences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LIST = r"(?:[ \t>]|[-*+][ \t]|\d+[.)][ \t])*"
_OPENING = re.compile(rf"^({_LIST})(`{{3,}}|~{{3,}})([^\n]*)", re.MULTILINE)
_CLOSING = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One block: `text[start:end]` with its fences, `text[code_start:code_end]` without them.

    `before` is what stands before the opening fence in its line: indentation, list and quote marks.
    `info` is what stands behind the fence, as a rule the language. A block that is not closed ends
    with the text.
    """

    start: int
    end: int
    code_start: int
    code_end: int
    before: str
    info: str
    is_closed: bool


def code_blocks(text: str) -> Iterator[CodeBlock]:
    """Yield the code blocks in order."""
    at = 0
    while opening := _OPENING.search(text, at):
        closings = _CLOSING.finditer(text, opening.end())
        closing = next((each for each in closings if each[1].startswith(opening[2])), None)
        at = closing.end() if closing else len(text)
        yield CodeBlock(
            start=opening.start(),
            end=at,
            code_start=min(opening.end() + 1, len(text)),
            code_end=closing.start() if closing else len(text),
            before=opening[1],
            info=opening[3].strip(),
            is_closed=closing is not None,
        )
        if closing is None:
            return
