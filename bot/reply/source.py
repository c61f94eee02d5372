"""Prepares Markdown for the parser, so that everything a person should read is shown.

The parser drops raw HTML and link definitions, takes `a || b || c` for a spoiler and `$PATH:$HOME`
for a formula. Such characters become placeholders before parsing and are restored afterwards. We
need not know exactly where code begins, because the originals come back in code as well. LaTeX that
is clearly a formula is written in Unicode and handed over as `$...$`.
"""

import re

from bot.reply.formulas import unicode_of
from bot.reply.placeholders import PLACEHOLDERS, opaque

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
_LOSABLE = re.compile(_LITERAL, _FLAGS)
TOKEN = re.compile(
    f"(?P<code>{_CODE})|{_FORMULA}|{_SPOILER}|{_KEPT}|(?P<literal>{_LITERAL})", _FLAGS
)
"""Code, formulas, and what the parser would lose; its groups tell them apart."""

FORMULA_MARKS = {"round": "$", "dollar": "$", "square": "$$", "dollars": "$$"}
"""What stands around a formula of each group."""

_LATEX = re.compile(r"[\\^_={}]")
_NAME = re.compile(r"[A-Za-z]++")


def protect(markdown: str) -> str:
    """Replace what the parser would lose; `markdown` is clean. `placeholders.restore` undoes it."""
    return TOKEN.sub(_protected, markdown)


def formula_in(token: re.Match[str]) -> str:
    """Return the LaTeX of a match of `TOKEN`; "" if it is no formula, but a price or brackets."""
    kind = token.lastgroup or ""
    if kind not in FORMULA_MARKS:
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
        case _ if formula_in(token):
            return _formula(token, FORMULA_MARKS[token.lastgroup or ""])
        case "round" | "square":  # only escaped brackets
            return f"{token[0][:2]}{protect(token[token.lastgroup])}{token[0][-2:]}"
        case _:
            return _literal(token[0])


def _formula(token: re.Match[str], mark: str) -> str:
    """Return a formula in Unicode, or its source if it is too long or too deeply nested."""
    shown = unicode_of(token[token.lastgroup or 0])
    return f"{mark}{opaque(shown)}{mark}" if shown else opaque(token[0])


def _literal(text: str) -> str:
    return _LOSABLE.sub(lambda found: PLACEHOLDERS[found[0]], text)
