"""Makes text that people wrote fit for a prompt: nothing invisible, no faked section tag.

Pure. Every text that comes from outside passes here once before a model reads it.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# What shows nothing and does nothing of Cc and Cf. Tabs, line ends, the joiners of words and emoji,
# the direction marks of Hebrew and Arabic, and the tags of a flag (group 1) are ordinary text.
_INVISIBLE = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff"
    "\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
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
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _INVISIBLE.sub(r"\1", paired)


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
