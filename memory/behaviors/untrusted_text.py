"""Makes text that people wrote fit for a prompt: nothing invisible, no faked section tag.

Pure. Every text that comes from outside passes here once before a model reads it.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

# What shows nothing and does nothing of Cc and Cf. Tabs, line ends, the joiners of words and emoji,
# the direction marks of Hebrew and Arabic, and the tags of a flag (group 1) are ordinary text.
_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff"
    "\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
_INVISIBLE = re.compile(
    f"(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{{3,6}}\U000e007f)|[{_HIDDEN}]+"
)
# One set is looked for several times as fast as two alternatives, and most texts have none of it.
_ANY_HIDDEN = re.compile(f"[{_HIDDEN}]")
_LOOKALIKES = str.maketrans("аеорсухіјѕһԁмгοαρνικτχυ", "aeopcyxijshdmroapviktxy")
_SECTION = "memory"
_MARKS = frozenset(("Mn", "Me"))
# Letters and symbols that show nothing, although their category is that of a visible one.
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"


def visible(text: str) -> str:
    """Return text without characters that show nothing, and with lone surrogates replaced."""
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _INVISIBLE.sub(r"\1", paired) if _ANY_HIDDEN.search(paired) else paired


def harmless(text: str) -> str:
    """Return visible text in which nobody fakes the memory section; it can be sent as UTF-8."""
    return _TAG.sub("&lt;", visible(text))


def harmless_json(text: str) -> str:
    """Do the same to JSON text, which keeps its meaning."""
    return _TAG.sub(r"\\u003c", visible(text))


def letters(text: str) -> Iterator[str]:
    """Give a text's characters for comparing: one form of all that look alike, no marks."""
    for character in text:
        yield from _compared(character)


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


def _tag() -> str:
    """Return a pattern for a bracket that opens the section's tag, as a reader sees it.

    Letters count that look like the word's, and between them may stand what is neither a letter nor
    ASCII. A bracket that ends a text counts too: what is joined to it could complete the tag. No
    run of characters belongs to two brackets, so the time is linear.
    """
    brackets = "<\uff1c\ufe64\u2039\u2329\u3008\u27e8\u276c\u276e\u02c2\u1438\u29fc"
    alike: dict[str, str] = {}
    for character in map(chr, chain.from_iterable(_ALPHABETS)):
        alike[_compared(character)] = alike.get(_compared(character), "") + character
    # Letters that the class of words does not hold, as the ones in circles.
    signs = (sign for letter in _SECTION for sign in alike[letter] if not sign.isalnum())
    ours = brackets + "".join(dict.fromkeys(signs))
    unseen = rf"(?:[^\w\s!-~{ours}]|[{_FILLERS}])*+"
    gap = rf"(?:[^\w!-~{ours}]|[/\\{_FILLERS}])*+"
    word = unseen.join(f"[{alike[letter]}]" for letter in _SECTION)
    return rf"[{brackets}](?={gap}(?:{word}(?![^\W{_FILLERS}])|\Z))"


_ALPHABETS = (
    range(0x41, 0x5B),
    range(0x61, 0x7B),
    range(0xC0, 0x530),  # Latin, Greek, Cyrillic
    range(0x1D00, 0x2200),  # small capitals, more accents, superscripts, letterlike signs
    range(0x2460, 0x2500),  # in circles and parentheses
    range(0xFF21, 0xFF5B),  # full width
    range(0x1D400, 0x1D800),  # mathematical
    range(0x1F110, 0x1F190),  # in squares
)
_TAG = re.compile(_tag())
