"""Writes JSON so that a person who is asked about it can tell texts apart that look alike. Pure."""

import re
import unicodedata

from memory.text.untrusted_text import SYMBOLS

# What people see, but cannot tell from one ordinary blank, or from an emoji without it.
_ALIKE = re.compile(
    f"(?<= ) |[\xa0\u202f\u3000\ufe0e\ufe0f\ufffc]|(?<=[{SYMBOLS}\ufe0e\ufe0f])\u200d"
)
# An escape sequence of JSON, an address, a word. An address is only tried where a run begins, or a
# long run of hyphens would take quadratic time.
_TOKEN = re.compile(r"\\u[0-9a-f]{4}|\\.|(?<![\w-])[\w-]+(?:[.@][\w-]+)+|\w+")
# Letters like those of ASCII: phonetic, Greek, Cyrillic, Armenian, Cherokee, Lisu.
_LIKE_ASCII = re.compile(
    "[\u0131\u0237\u0250-\u02af\u0370-\u058f\u13a0-\u13ff\u1c80-\u1dbf\u1f00-\u1fff"
    "\u2c60-\u2dff\ua4d0-\ua4ff\ua640-\ua69f\ua720-\ua7ff\uab30-\uabbf]"
)
_ASCII_LETTER = re.compile("[A-Za-z]")


def clear_json(text: str) -> str:
    """Return JSON text that writes out characters that look like others; its value is the same.

    These are odd and repeated blanks, letters of other alphabets in a word or an address with Latin
    ones, what one font shows like another character or as a box, and what Unicode calls the same.
    """
    written = ""
    for each in _TOKEN.sub(_in_one_alphabet, _ALIKE.sub(_written_out, text)):
        written += _written_out(each) if _looks_like_others(written[-1:], each) else each
    if unicodedata.is_normalized("NFC", written):
        return written
    return "".join(_written_out(each) if unicodedata.combining(each) else each for each in written)


def _in_one_alphabet(found: re.Match[str]) -> str:
    token = found[0]
    if token[0] == "\\" or token.isascii() or not _ASCII_LETTER.search(token):
        return token
    return _LIKE_ASCII.sub(_written_out, token)


def _looks_like_others(before: str, character: str) -> bool:
    if character.isascii():
        return False
    if unicodedata.category(character) == "Cn":
        return True
    alone, joined = (unicodedata.normalize("NFC", each) for each in (before, before + character))
    return joined != alone + character


def _written_out(found: re.Match[str] | str) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
