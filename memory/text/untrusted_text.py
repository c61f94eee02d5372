"""Makes text of people fit for a prompt and for storage: visible, no faked tag, bounded length.

Pure. All text from outside passes through `harmless` once before a model reads it.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

UNTRUSTED_MARK = "(partly others' words)"
"""Follows a text that rests on forwarded, quoted, read or looked-up text."""

# The characters of Cc and Cf that show nothing and do nothing. Tabs, line ends, the joiners of
# words and emoji, the direction marks of Hebrew and Arabic, and the tags of a flag (group 1) are
# ordinary text.
_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff"
    "\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
_INVISIBLE = re.compile(
    f"(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{{3,6}}\U000e007f)|[{_HIDDEN}]+"
)
# A search for one set is several times faster than one for two alternatives, and most texts hold no
# such character.
_ANY_HIDDEN = re.compile(f"[{_HIDDEN}]")
_LOOKALIKES = str.maketrans("аеорсухіјѕһԁмгοαρνικτχυ", "aeopcyxijshdmroapviktxy")
_SECTION = "memory"
_MARKS = frozenset(("Mn", "Me"))
# Characters that show nothing, although Unicode counts them as letters or symbols.
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """Return text without invisible characters, with lone surrogates replaced."""
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _INVISIBLE.sub(r"\1", paired) if _ANY_HIDDEN.search(paired) else paired


def harmless(text: str) -> str:
    """Return visible text that cannot fake the memory section; it can be sent as UTF-8."""
    return _TAG.sub("&lt;", visible(text))


def harmless_json(text: str) -> str:
    """Return the same for JSON text; its value does not change."""
    return _TAG.sub(r"\\u003c", visible(text))


def one_line(text: str) -> str:
    """Return text on one line that can be stored as UTF-8; half an emoji becomes "?"."""
    return " ".join(_CONTROLS.sub(" ", text).encode("utf-8", "replace").decode().split())


def cut(text: str, max_bytes: int) -> str:
    """Return text of at most `max_bytes` of UTF-8; a longer one ends after a whole word and "…"."""
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    head = encoded[: max_bytes - len("…".encode())].decode(errors="ignore")
    return (head.rpartition(" ")[0] or head) + "…"


def letters(text: str) -> Iterator[str]:
    """Yield the characters of a text for comparing: look-alikes in one form, without marks."""
    for character in text:
        yield from _compared(character)


@lru_cache(4096)
def _compared(character: str) -> str:
    """Return the form in which a character is compared; "" for an invisible one."""
    if character.isspace():
        return " "
    plain = unicodedata.normalize("NFKD", character).casefold().translate(_LOOKALIKES)
    return "".join(filter(_shows, plain))


def _shows(character: str) -> bool:
    category = unicodedata.category(character)
    return not (category[0] == "C" or category in _MARKS or character in _FILLERS)


def _tag() -> str:
    """Return a pattern for a bracket that opens the section's tag in the eyes of a reader.

    Look-alike letters count as the letters of the tag. Between them, characters that are neither
    letters nor ASCII are allowed. A bracket at the end of a text counts too, because text that is
    appended could complete the tag. Brackets share no characters, so the time is linear.
    """
    brackets = "<\uff1c\ufe64\u2039\u2329\u3008\u27e8\u276c\u276e\u02c2\u1438\u29fc"
    alike: dict[str, str] = {}
    for character in map(chr, chain.from_iterable(_ALPHABETS)):
        alike[_compared(character)] = alike.get(_compared(character), "") + character
    # Look-alikes that are not letters, such as letters in circles.
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
