"""Where a text may be cut: between sentences, between words, between whole characters.

Works in any script, in time that is linear in the length of the text.
"""

import re
from collections.abc import Iterator

from memory.text.characters import character_start

_CLOSING = "\"'”’»›)\\]}」』）】"

# A full stop ends a sentence only before a blank, and not before a lower-case letter ("e.g. this").
# The marks of scripts without blanks always end one. So does the end of a line, because lists and
# tables have no full stops. The lookbehind and the possessive quantifiers let the engine start only
# once in a row of marks, so the time is linear.
_END = re.compile(
    rf"(?:(?<![.!?…])[.!?…]++[{_CLOSING}]*+(?=\s)|[。！？｡؟۔।॥።]++[{_CLOSING}]*+)\s*+|\n\s*+"
)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each with the blanks after it; joined, they are the text."""
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

    That is after the last blank of the second half, else between two whole characters.
    """
    blank = max(text.rfind(sign, at // 2, at) for sign in " \t\n")
    if blank > 0:
        return blank + 1
    return character_start(text, at) or at
