"""Prepares Markdown for the parser, so that everything a person should read is shown.

The parser drops raw HTML and link definitions, takes `a || b || c` for a spoiler and `$PATH:$HOME`
for a formula. Such characters become placeholders before parsing and are restored afterwards. We
need not know exactly where code begins, because the originals come back in code as well. LaTeX that
is clearly a formula is written in Unicode and handed over as `$...$`.

Formulas are bounded in length and depth before they are converted. telegramify-markdown puts
overlines and underlines on every character, marks included, so each level of nesting would double
the text. Here each letter gets a mark once.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import islice, pairwise

from telegramify_markdown.latex_escape.const import COMBINING, CombiningType
from telegramify_markdown.latex_escape.helper import LatexToUnicodeHelper

from bot.reply.parts import Part, well_formed

# A fence to its end or the text's, a span in backticks, a line that may be indented code.
_CODE = r"""
  ^ (?: [ \t>] | [-*+][ \t] | \d+[.)][ \t] )* (?P<fence> `{3,} | ~{3,} ) .*?
    (?: ^ [ \t>]* (?P=fence) | \Z )
| (?<!`) (?P<ticks> `++ ) (?: [^\n] | \n(?![ \t]*\n) ){1,1000}? (?<!`) (?P=ticks) (?!`)
| ^ (?: [ ]{4} | \t ) (?! [ \t]* (?: [-*+] | \d+[.)] ) [ \t] ) [^\n]*
"""
_FORMULA = r"""
  (?<! \w ) \\\( (?P<round> (?: \\[^()\n] | [^\\`\n] ){1,300} ) \\\)
| (?<! \w ) \\\[ (?P<square> (?: \\[^\[\]] | [^\\`\n] | \n(?!\n) ){1,1500} ) \\\]
| (?<! [\w$] ) \$ (?! [\s{] )
    (?P<dollar> (?: \\. | [^\\$`\n] ){1,300} ) (?<! \s ) \$ (?! [\w${] )
| \$\$ (?P<dollars> (?: [^`$\n] | \n(?!\n) ){1,1500} ) \$\$
"""
_SPOILER = r"(?<! [\w|] ) \|\| (?! \s ) (?P<spoiler> [^|`\n]+ ) (?<! \s ) \|\| (?! [\w|] )"
_KEPT = r"(?P<kept> \\[\\<|$\[] | < (?: https?:// | mailto: ) [^\s<>]+ > )"
_LITERAL = r"""
  [<$]
| (?<!~) ~ (?!~)                                         # "about", and no strikethrough
| (?<=\|) \|                                             # the second sign of no spoiler
| \[ (?= (?: \\. | [^\[\]\\] ){1,999} \]: | \s*\]\( )    # no definition, no link without text
| \| (?= (?: [ \t:]* -+ [ \t:]* \| ){50} )               # no table that wide: all rows get long
"""
_FLAGS = re.VERBOSE | re.DOTALL | re.MULTILINE
_LOSABLE = re.compile(rf"\\[\\\[] | {_LITERAL}", _FLAGS)  # or an escaped sign, which stays
_TOKEN = re.compile(
    f"(?P<code>{_CODE})|{_FORMULA}|{_SPOILER}|{_KEPT}|(?P<literal>{_LITERAL})", _FLAGS
)
"""Code, formulas, and what the parser would lose; its groups tell them apart."""

_FORMULA_MARKS = {"round": "$", "dollar": "$", "square": "$$", "dollars": "$$"}
"""What stands around a formula of each group."""

_LATEX = re.compile(r"[\\^_={}]")
_NAME = re.compile(r"[A-Za-z]++")


def protect(markdown: str) -> str:
    """Replace what the parser would lose; `markdown` is clean. `restore` undoes it."""
    return _TOKEN.sub(_protected, markdown)


def _formula_in(token: re.Match[str]) -> str:
    """Return the LaTeX of a match of `_TOKEN`; "" if it is no formula, but a price or brackets."""
    kind = token.lastgroup or ""
    if kind not in _FORMULA_MARKS:
        return ""
    body = token[kind]
    # Between dollars, a name of one letter is a formula too.
    longest_name = max(map(len, _NAME.findall(body)), default=0) if "dollar" in kind else 0
    return body if _LATEX.search(body) or longest_name == 1 else ""


def _protected(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "kept":
            return token[0]
        case "literal":
            return PLACEHOLDERS[token[0]]
        case "spoiler":
            return f"||{protect(token['spoiler'])}||"
        case _ if _formula_in(token):
            kind = token.lastgroup or ""
            mark, shown = _FORMULA_MARKS[kind], unicode_of(token[kind])
            return f"{mark}{opaque(shown)}{mark}" if shown else opaque(token[0])
        case "round" | "square":  # only escaped brackets
            return f"{token[0][:2]}{protect(token[token.lastgroup])}{token[0][-2:]}"
        case _:
            return _LOSABLE.sub(lambda found: PLACEHOLDERS.get(found[0], found[0]), token[0])


_MAX_CHARS = 1500
_MAX_NESTING = 8
_CHAIN = re.compile(rf"(?:\\(?:[A-Za-z]++|.)){{{_MAX_NESTING + 1}}}")  # \hat\hat\hat… nests, too
_IS_WHOLE = re.compile(r"[\w.]*+")


def unicode_of(formula: str) -> str:
    """Return a formula in Unicode; "" if it is too long or too deeply nested to be converted."""
    depth, deepest = 0, formula.count(r"\begin")
    for char in formula:
        if char in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "}]":
            depth = max(0, depth - 1)
    if len(formula) > _MAX_CHARS or deepest > _MAX_NESTING or _CHAIN.search(formula):
        return ""
    return str(_CONVERTER.convert(formula)).strip()


class _Converter(LatexToUnicodeHelper):
    """The library's converter, with marks that do not multiply and roots in parentheses."""

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
    def translate_sqrt(command: str, option: str, param: str) -> str:  # noqa: ARG004
        """Return `√x` or `√(b²-4ac)`: an overline over each letter is hard to read in a chat."""
        radix, radicand = LatexToUnicodeHelper.make_sqrt(option.strip(), ""), param.strip()
        return f"{radix}{radicand}" if _IS_WHOLE.fullmatch(radicand) else f"{radix}({radicand})"


_CONVERTER: LatexToUnicodeHelper = _Converter()


_REPLACED = "<|$[~\\_^{}`\n -+*>.)"
PLACEHOLDERS = {char: chr(0xFDD0 + number) for number, char in enumerate(_REPLACED)}
"""The placeholder of each character that can be replaced."""

_ORIGINALS = {ord(placeholder): char for char, placeholder in PLACEHOLDERS.items()}
_ALL = str.maketrans(PLACEHOLDERS)
# Text from outside never holds our placeholders: Unicode does not allow them in interchange.
_CLEANED = dict.fromkeys(range(0xFDD0, 0xFDF0), "\ufffd")

_MAX_INDENT = 32  # columns of indentation, list marks and quote marks at the beginning of a line
_MAX_PADDING = 16_384  # to which a table may be padded, beyond four times its own length
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
    markdown = _INDENT.sub(_shallow, markdown)
    if surplus := next(islice(_FENCE.finditer(markdown), _MAX_FENCES, None), None):
        few, rest = markdown[: surplus.start()], markdown[surplus.start() :]
        markdown = few + _FENCE.sub(lambda fence: fence[0].translate(_MARKS), rest)
    blocks = _BLANK_LINE.split(markdown)
    for number, block in enumerate(blocks):
        lines = block.split("\n")
        padded = len(lines) * max(map(len, lines))
        if "|" in block and padded > 4 * len(block) + _MAX_PADDING:
            blocks[number] = block.replace("|", PLACEHOLDERS["|"])
    return "".join(blocks)


def _shallow(indent: re.Match[str]) -> str:
    marks, column = indent[0], 0
    for at, char in enumerate(marks):
        column += 4 - column % 4 if char == "\t" else 1
        if column > _MAX_INDENT:
            return marks[:at] + marks[at:].translate(_MARKS)
    return marks


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
    text = _TOKEN.sub(lambda token: "" if token.lastgroup == "code" else token[0], markdown)
    # The second line of a table is a rule.
    columns = [
        rule.strip().strip("|").count("|") + 1
        for row, rule in pairwise(text.split("\n"))
        if "|" in row and "-" in rule and "|" in rule and _RULE.issuperset(rule)
    ]
    blocks = (t for t in _TOKEN.finditer(markdown) if _FORMULA_MARKS.get(t.lastgroup or "") == "$$")
    is_fit = max(columns, default=0) <= _MAX_COLUMNS and not _NOT_RAW.search(markdown)
    return is_fit and (any(map(_formula_in, blocks)) or bool(columns))


def rich_markdown(markdown: str) -> str:
    """Return the Markdown with dollars around all formulas, and with all other dollars escaped."""
    return _TOKEN.sub(_with_dollars, markdown)


def _with_dollars(token: re.Match[str]) -> str:
    if formula := _formula_in(token):
        mark = _FORMULA_MARKS[token.lastgroup or ""]
        return f"{mark}{formula.strip()}{mark}"
    is_money = token.lastgroup in ("literal", "dollar", "dollars")
    return token[0].replace("$", "\\$") if is_money else token[0]
