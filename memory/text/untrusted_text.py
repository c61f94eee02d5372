"""Makes text of people fit for a prompt and for storage: visible, no faked tag, bounded length.

Pure. All text from outside passes through `escaped` once before a model reads it.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain

UNTRUSTED_MARK = "(partly others' words)"
"""Follows a text that rests on forwarded, quoted, read or looked-up text."""

# Characters that show nothing by themselves: all of Default_Ignorable_Code_Point, and the rest of
# Cc and Cf but tabs, line ends and the visible signs of Arabic. Models can read words that are
# spelled in them, so a prompt keeps one only in a place where ordinary text needs it.
_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
SYMBOLS = (
    "\xa9\xae\u203c\u2049\u2100-\u214f\u2190-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Scripts whose letters join: Arabic and its neighbors, those of India, Khmer, Mongolian.
_JOINING = (
    "\u0600-\u0dff\u1000-\u109f\u1700-\u18af\u1900-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00010aff\U00011000-\U00011fff"
)
# Arabic letters that join on both sides: a joiner after one of them changes how it looks.
_JOINED_ON_BOTH_SIDES = (
    "\u0626\u0628\u062a-\u062e\u0633-\u063f\u0641-\u0647\u0649\u064a\u066e\u066f\u0678-\u0687"
    "\u069a-\u06bf\u06c1\u06c2\u06cc\u06ce\u06d0\u06d1\u06fa-\u06fc\u06ff"
)
_VIRAMAS = (
    "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u1039\u103a\u17d2"
)
_RIGHT_TO_LEFT = (
    "\u0590-\u060f\u0610-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
    "\U00010800-\U00010fff\U0001e800-\U0001efff"
)
_CJK = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_FLAGS = (  # of England, Scotland and Wales: their letters are tags
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f",
)
_IN_FLAG = "|".join(f"(?<={flag[:at]}){flag[at:]}" for flag in _FLAGS for at in range(1, len(flag)))
# Each alternative takes a character before it looks at what stands before it. This is faster.
_IN_EMOJI = (
    rf"[\ufe0e\ufe0f](?:(?<=[{SYMBOLS}].)|(?<=[0-9#*].)(?=\u20e3))"
    rf"|\u200d(?=[{SYMBOLS}])(?:(?<=[{SYMBOLS}].)|(?<=[{SYMBOLS}]\ufe0f.))"
    rf"|(?=[\U000e0061-\U000e007f])(?:{_IN_FLAG})"
)
_IN_LETTERS = (
    rf"[\u200c\u200d](?:(?<=[{_JOINING}].)|(?=[{_JOINING}])(?<![{_JOINING}][\u200c\u200d].))"
    rf"|[\u061c\u200e\u200f](?:(?<=[{_RIGHT_TO_LEFT}].)|(?<=[{_RIGHT_TO_LEFT}][!-/:-@].)"
    rf"|(?=[{_RIGHT_TO_LEFT}]))"
    rf"|[\u180b-\u180d\u180f](?<=[\u1820-\u18aa].)|[\U000e0100-\U000e01ef](?<=[{_CJK}].)"
)
_IN_LETTERS_THAT_SHOW_IT = (
    rf"\u200c(?<=[{_JOINED_ON_BOTH_SIDES}].)(?=[\u0620-\u064a\u066e-\u06d3])"
    rf"|[\u200c\u200d](?<=[{_VIRAMAS}].)|\u200d(?=[{_VIRAMAS}])"
)
_INVISIBLE = re.compile(f"(?s)(?=[{_HIDDEN}])(?!{_IN_EMOJI}|{_IN_LETTERS}).")
_INVISIBLE_TO_PEOPLE = re.compile(f"(?s)(?=[{_HIDDEN}])(?!{_IN_EMOJI}|{_IN_LETTERS_THAT_SHOW_IT}).")
# A search for one set is several times faster, and most texts hold no such character.
_ANY_HIDDEN = re.compile(f"[{_HIDDEN}]")
# Blanks that people tell apart, and characters that are newer than Python's table of them.
_SEEN = re.compile(f"[ \xa0\u202f\u3000\t\r\n{SYMBOLS}\U00020000-\U000323af]")
_VARIANTS = re.compile("[\U000e0100-\U000e01ef]")
_MAX_VARIANTS = 8
"""Variants of letters in one text. Names need a few; more could be words, one byte a letter."""
_LOOKALIKES = str.maketrans("аеорсухіјѕһԁмгοαρνικτχυ", "aeopcyxijshdmroapviktxy")
_SECTION = "memory"
_MARKS = frozenset(("Mn", "Me"))
# Characters that show nothing, although Unicode counts them as letters or symbols.
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0\U00013441\U00013442\U00016fe4\U0001bc9d\U0001d159"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """Return text without invisible characters, with lone surrogates replaced.

    One invisible character stays where ordinary text needs it: in an emoji, and as a joiner,
    direction mark or variant of a letter whose script has these.
    """
    if text.isascii() and text.isprintable():  # most texts, and this is cheap to see
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if not _ANY_HIDDEN.search(paired):
        return paired
    if len(_VARIANTS.findall(paired)) > _MAX_VARIANTS:
        paired = _VARIANTS.sub("", paired)
    return _INVISIBLE.sub("", paired)


def seen_by_people(text: str) -> str:
    """Return text with only the characters that a person sees: the text to which they may agree.

    Joiners stay only where they change how a letter or an emoji looks.
    """
    return "".join(filter(_is_seen, _INVISIBLE_TO_PEOPLE.sub("", visible(text))))


def escaped(text: str) -> str:
    """Return visible text that cannot fake the memory section; it can be sent as UTF-8."""
    return _tag().sub("&lt;", visible(text))


def escaped_json(text: str) -> str:
    """Return the same for JSON text; its value does not change."""
    return _tag().sub(r"\\u003c", visible(text))


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


@lru_cache(4096)
def _is_seen(character: str) -> bool:
    """Return whether a character shows; `_INVISIBLE_TO_PEOPLE` has judged those of Cf."""
    if _SEEN.match(character):
        return True
    category = unicodedata.category(character)
    return category not in ("Cn", "Co", "Zl", "Zp", "Zs") and character not in _FILLERS


@cache
def _tag() -> re.Pattern[str]:
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
    return re.compile(rf"[{brackets}](?={gap}(?:{word}(?![^\W{_FILLERS}])|\Z))")


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
