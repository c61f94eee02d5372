"""Markdown made ready for the parser, so that nothing a person should read gets lost in it.

The parser drops raw HTML and link definitions, takes `a || b || c` for a spoiler and `$PATH:$HOME`
for a formula. Such characters are exchanged for Unicode noncharacters before parsing and put back
afterwards. That needs no exact knowledge of where code begins: in code, too, the original returns.
LaTeX that is clearly a formula is handed over as `$...$`, which the parser writes in Unicode.
"""

import re

_STAND_INS = {"<": "\ufdd0", "|": "\ufdd1", "$": "\ufdd2", "[": "\ufdd3"}
_ORIGINALS = {ord(stand_in): original for original, stand_in in _STAND_INS.items()}
# Text from outside never holds our stand-ins: Unicode keeps them out of interchange.
_CLEANED = dict.fromkeys(_ORIGINALS, "\ufffd")

# A fence up to its end (or the text's), a span in backticks, a line that may be indented code.
_CODE = r"""
  ^ (?: [ \t>] | [-*+][ \t] | \d+[.)][ \t] )* (?P<fence> `{3,} | ~{3,} ) .*?
    (?: ^ [ \t>]* (?P=fence) | \Z )
| (?P<ticks> `+ ) (?!`) (?: [^\n] | \n(?!\s*\n) )*? (?<!`) (?P=ticks) (?!`)
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
_KEPT = r"(?P<kept> \\[\\<|$\[] | < (?: https?:// | tg:// | mailto: ) [^\s<>]+ > )"
_LITERAL = r"""
  [<$]
| (?<=\|) \|                                             # the second sign of no spoiler
| \[ (?= (?: \\. | [^\[\]\\] ){1,999} \]: | \s*\]\( )    # no definition, no link without a text
| \| (?= (?: [ \t:]* -+ [ \t:]* \| ){50} )               # no table that wide: all rows get as long
"""
_FLAGS = re.VERBOSE | re.DOTALL | re.MULTILINE
_LOSABLE = re.compile(_LITERAL, _FLAGS)
_TOKEN = re.compile(
    f"(?P<code>{_CODE})|{_FORMULA}|{_SPOILER}|{_KEPT}|(?P<literal>{_LITERAL})", _FLAGS
)

_LATEX = re.compile(r"[\\^_={}]")
_ONE_LETTER_NAMES = re.compile(r"(?!.*[A-Za-z]{2}).*[A-Za-z]")


def clean(text: str) -> str:
    """Return text that UTF-16 can hold, with plain newlines; a lone surrogate becomes U+FFFD."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CLEANED)


def protect(markdown: str) -> str:
    """Exchange what the parser would lose; `markdown` is clean. `restore` undoes it."""
    return _TOKEN.sub(_protected, markdown)


def restore(text: str) -> str:
    """Put back what `protect` exchanged; the number of UTF-16 units stays the same."""
    return text.translate(_ORIGINALS)


def _protected(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "kept":
            return token[0]
        case "literal":
            return _STAND_INS[token[0]]
        case "spoiler":
            return f"||{protect(token['spoiler'])}||"
        case "round" | "square":
            return _bracketed(token, token[token.lastgroup])
        case "dollar" | "dollars":
            return _between_dollars(token, token[token.lastgroup])
        case _:
            return _literal(token[0])


def _bracketed(token: re.Match[str], body: str) -> str:
    if not _LATEX.search(body):  # the brackets are escaped, that is all
        return f"{token[0][:2]}{protect(body)}{token[0][-2:]}"
    mark = "$" if token.lastgroup == "round" else "$$"
    return f"{mark}{_literal(body.strip())}{mark}"


def _between_dollars(token: re.Match[str], body: str) -> str:
    if not _LATEX.search(body) and not _ONE_LETTER_NAMES.match(body):
        return _literal(token[0])
    mark = "$" if token.lastgroup == "dollar" else "$$"
    return f"{mark}{_literal(body)}{mark}"


def _literal(text: str) -> str:
    return _LOSABLE.sub(lambda found: _STAND_INS[found[0]], text)
