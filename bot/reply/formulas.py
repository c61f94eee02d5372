"""LaTeX formulas in Unicode. Their length and depth are bounded before they are converted.

The conversion is telegramify-markdown's. It puts overlines and underlines on every character, marks
included, so each level of nesting would double the text. Here each letter gets a mark once.
"""

import re
import unicodedata

from telegramify_markdown.latex_escape.const import COMBINING, CombiningType
from telegramify_markdown.latex_escape.helper import LatexToUnicodeHelper

_MAX_CHARS = 1500
_MAX_NESTING = 8
_OPENING, _CLOSING = "{[", "}]"
_CHAIN = re.compile(rf"(?:\\(?:[A-Za-z]++|.)){{{_MAX_NESTING + 1}}}")  # \hat\hat\hat… nests, too
_BEGIN = r"\begin"
_IS_WHOLE = re.compile(r"[\w.]*+")


def unicode_of(formula: str) -> str:
    """Return a formula in Unicode; "" if it is too long or too deeply nested to be converted."""
    too_deep = _nesting(formula) > _MAX_NESTING or formula.count(_BEGIN) > _MAX_NESTING
    if len(formula) > _MAX_CHARS or too_deep or _CHAIN.search(formula):
        return ""
    return _CONVERTER.convert(formula).strip()


def _nesting(formula: str) -> int:
    depth = deepest = 0
    for char in formula:
        if char in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif char in _CLOSING:
            depth = max(0, depth - 1)
    return deepest


class _Converter(LatexToUnicodeHelper):
    """The library's converter, with marks that do not multiply and roots in parentheses."""

    def convert(self, latex: str) -> str:
        return str(LatexToUnicodeHelper.convert(self, latex))

    @staticmethod
    def translate_combining(command: str, text: str) -> str:
        mark, where = COMBINING.get(command, ("", None))
        if where is not CombiningType.EveryChar:
            return str(LatexToUnicodeHelper.translate_combining(command, text))
        return "".join(
            char if unicodedata.category(char) in ("Mn", "Me") else char + mark
            for char in text.replace(mark, "")
        )

    @staticmethod
    def make_sqrt(index: str, radicand: str) -> str:
        """Return `√x` or `√(b²-4ac)`: an overline over each letter is hard to read in a chat."""
        radix = str(LatexToUnicodeHelper.make_sqrt(index, ""))
        return radix + (radicand if _IS_WHOLE.fullmatch(radicand) else f"({radicand})")

    @classmethod
    def translate_sqrt(cls, command: str, option: str, param: str) -> str:  # noqa: ARG003
        return cls.make_sqrt(option.strip(), param.strip())


_CONVERTER = _Converter()
