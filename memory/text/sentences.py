"""Where a text may be cut: between sentences, between words, between whole characters.

Works in any script, in time that is linear in the length of the text.
"""

import re
import unicodedata
from collections.abc import Iterator

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


_VIRAMA = 9  # the combining class of the signs that join Indic consonants
_MAX_CLUSTER = 64  # code points; a longer cluster is made of combining marks to do harm


def character_start(text: str, at: int, start: int = 0) -> int:
    """Return where the character that `at` falls into begins, `at` itself if it begins there.

    Characters of more than 64 code points are cut at `at`. Nothing before `start` is looked at; a
    character begins there. These are the parts of the Unicode text segmentation rules (UAX 29) that
    chat text meets: combining marks, Indic conjuncts, emoji joined by ZWJ, skin tones, tags, flags.
    """
    for place in range(at, max(start, at - _MAX_CLUSTER) - 1, -1):
        if place == start or not _continues(text, place, start):
            return place
    return at


def _continues(text: str, at: int, start: int) -> bool:
    """Return whether `text[at]` is shown as one character with the text before it."""
    if at >= len(text):
        return False
    char, before = text[at], text[at - 1]
    if before == "\n":
        return False
    if before == "\u200d" or unicodedata.combining(before) == _VIRAMA or char in "\u200c\u200d":
        return True
    if _is_flag_letter(char):  # each two of them are one flag
        first = at
        while first > start and _is_flag_letter(text[first - 1]):
            first -= 1
        return (at - first) % 2 == 1
    is_tone_or_tag = "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f"
    return is_tone_or_tag or unicodedata.category(char) in ("Mn", "Mc", "Me")


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
