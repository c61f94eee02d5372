"""Characters that the parser must not interpret, exchanged for Unicode noncharacters and back.

Each is one UTF-16 unit, as what it stands for, so that offsets stay true.
"""

_EXCHANGED = "<|$[~\\_^{}`\n -+*>.)"
PLACEHOLDERS = {char: chr(0xFDD0 + number) for number, char in enumerate(_EXCHANGED)}
"""The stand-in of each character that can be exchanged."""

_ORIGINALS = {ord(stand_in): char for char, stand_in in PLACEHOLDERS.items()}
_ALL = str.maketrans(PLACEHOLDERS)
# Text from outside never holds our stand-ins: Unicode keeps them out of interchange.
_CLEANED = dict.fromkeys(range(0xFDD0, 0xFDF0), "\ufffd")


def clean(text: str) -> str:
    """Return text that UTF-16 can hold, with plain newlines; a lone surrogate becomes U+FFFD."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CLEANED)


def opaque(text: str) -> str:
    """Exchange all that the parser could interpret."""
    return text.translate(_ALL)


def restore(text: str) -> str:
    """Put back what was exchanged; the number of UTF-16 units stays the same."""
    return text.translate(_ORIGINALS)
