"""Makes text that people wrote fit for a prompt: nothing invisible, no faked section tag.

Pure. Every text that comes from outside passes here once before a model reads it.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# All of Cf and Cc, but for the joiners of Persian words and of emoji, and for tab and line ends.
# Generated ranges; a test compares them with Unicode's own table.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f]"
)
_SECTION = "memory"
_BRACKET = re.compile("[<\uff1c\ufe64\u2039\u2329\u3008\u27e8\u276c\u276e\u02c2\u1438\u29fc]")
_SLASHES = frozenset("/\\\u2044\u2215\u2571\u29f8")
# Letters and symbols that show nothing, although their category is that of a visible one.
_FILLERS = frozenset("\u115f\u1160\u2800")
_MARKS = frozenset(("Mn", "Me"))
_LOOKALIKES = str.maketrans("аеорсухіјѕһԁмгοαρνικτχυ", "aeopcyxijshdmroapviktxy")


def visible(text: str) -> str:
    """Return text without characters that show nothing, and with lone surrogates replaced."""
    return _INVISIBLE.sub(
        "", text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )


def harmless(text: str) -> str:
    """Return visible text in which nobody fakes the memory section; it can be sent as UTF-8."""
    return _escaped(visible(text), "&lt;")


def harmless_json(text: str) -> str:
    """Do the same to JSON text, which keeps its meaning."""
    return _escaped(visible(text), "\\u003c")


def letters(text: str) -> Iterator[str]:
    """Give a text's characters for comparing: one form of all that look alike, no marks."""
    for character in text:
        yield from _compared(character)


def _escaped(text: str, instead: str) -> str:
    return _BRACKET.sub(lambda found: instead if _is_tag(text, found.end()) else found[0], text)


def _is_tag(text: str, start: int) -> bool:
    """Say whether a bracket before `start` opens a tag, as a reader sees it.

    A bracket that ends a text counts too: what is joined to it could complete the tag.
    """
    matched = 0
    for at in range(start, len(text)):
        for letter in _compared(text[at]):
            if matched == len(_SECTION):
                return not (letter.isalnum() or letter == "_")
            if matched == 0 and (letter.isspace() or letter in _SLASHES):
                continue
            if letter != _SECTION[matched]:
                return False
            matched += 1
    return matched in (0, len(_SECTION))


@lru_cache(4096)
def _compared(character: str) -> str:
    """Return how one character is compared; "" for one that shows nothing."""
    if character.isspace():
        return " "
    plain = unicodedata.normalize("NFKD", character).casefold().translate(_LOOKALIKES)
    return "".join(filter(_shows, plain))


def _shows(character: str) -> bool:
    category = unicodedata.category(character)
    return not (category[0] == "C" or category in _MARKS or character in _FILLERS)
