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
_TOKEN = re.compile(
    f"(?P<code>{_CODE})|{_FORMULA}|{_SPOILER}|{_KEPT}|(?P<literal>{_LITERAL})", _FLAGS
)

_LATEX = re.compile(r"[\\^_={}]")
_NAME = re.compile(r"[A-Za-z]++")


def protect(markdown: str) -> str:
    """Replace what the parser would lose; `markdown` is clean. `placeholders.restore` undoes it."""
    return _TOKEN.sub(_protected, markdown)


def _protected(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "kept":
            return token[0]
        case "literal":
            return PLACEHOLDERS[token[0]]
        case "spoiler":
            return f"||{protect(token['spoiler'])}||"
        case "round" | "square":
            return _bracketed(token, token[token.lastgroup])
        case "dollar" | "dollars":
            return _between_dollars(token, token[token.lastgroup])
        case _:
            return _literal(token[0])


def _bracketed(token: re.Match[str], body: str) -> str:
    if not _LATEX.search(body):  # only escaped brackets
        return f"{token[0][:2]}{protect(body)}{token[0][-2:]}"
    return _formula(token, "$" if token.lastgroup == "round" else "$$")


def _between_dollars(token: re.Match[str], body: str) -> str:
    longest_name = max(map(len, _NAME.findall(body)), default=0)
    if not _LATEX.search(body) and longest_name != 1:
        return _literal(token[0])
    return _formula(token, "$" if token.lastgroup == "dollar" else "$$")


def _formula(token: re.Match[str], mark: str) -> str:
    """Return a formula in Unicode, or its source if it is too long or too deeply nested."""
    shown = unicode_of(token[token.lastgroup or 0])
    return f"{mark}{opaque(shown)}{mark}" if shown else opaque(token[0])


def _literal(text: str) -> str:
    return _LOSABLE.sub(lambda found: PLACEHOLDERS[found[0]], text)
