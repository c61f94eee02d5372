"""Where a text may be cut: at the ends of its sentences, in any script.

Pure text; how long a passage may be is `chunking`'s business.
"""

import re
import unicodedata
from collections.abc import Iterator

_CLOSING = "\"'”’»›)\\]}」』）】"

# A full stop ends a sentence only before a blank, and not where a lower-case letter goes on ("e.g.
# this"). The marks of scripts without blanks end one wherever they stand. A line ends one as well:
# lists and tables have no full stops. A row of marks is looked at once, from its beginning.
_END = re.compile(
    rf"(?:(?<![.!?…])[.!?…]++[{_CLOSING}]*+(?=\s)|[。！？｡؟۔।॥።]++[{_CLOSING}]*+)\s*+|\n\s*+"
)

_JOINERS = "\u200c\u200d\ufe0f"


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text with the blanks behind them: joined, they are the text."""
    start = 0
    for end in _END.finditer(text):
        at = end.end()
        goes_on = text[at : at + 1].islower() and "\n" not in end.group()
        if not goes_on and at > start:
            yield text[start:at]
            start = at
    if start < len(text):
        yield text[start:]


def cut_before(text: str, at: int) -> int:
    """Return where to cut so that the first part is at most `at` characters, and not empty.

    After the last blank if there is one in the second half, else between two whole characters.
    """
    blank = max(text.rfind(sign, at // 2, at) for sign in " \t\n")
    if blank > 0:
        return blank + 1
    place = at
    while place > 1 and _belongs_to_the_left(text, place):
        place -= 1
    return place if place > 1 else at


def _belongs_to_the_left(text: str, place: int) -> bool:
    """Say whether a cut would part a letter from its mark, or an emoji from the rest of it."""
    if place >= len(text):
        return False
    after, before = text[place], text[place - 1]
    return unicodedata.category(after).startswith("M") or after in _JOINERS or before in _JOINERS
