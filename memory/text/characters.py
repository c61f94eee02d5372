"""Where a text must not be cut: inside what a reader sees as one character."""

import unicodedata

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
    if _is_flag_letter(char):
        return _flag_letters_before(text, at, start) % 2 == 1
    is_tone_or_tag = "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f"
    return is_tone_or_tag or unicodedata.category(char) in ("Mn", "Mc", "Me")


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_letters_before(text: str, at: int, start: int) -> int:
    first = at
    while first > start and _is_flag_letter(text[first - 1]):
        first -= 1
    return at - first
