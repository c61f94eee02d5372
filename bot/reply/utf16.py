"""Text as Telegram counts it: in UTF-16 units, where an emoji is two."""


def well_formed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD; no JSON or UTF-8 writer accepts one.

    The length in UTF-16 units stays the same, so offsets of entities keep their meaning.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def utf16_slice(text: str, start: int, end: int | None = None) -> str:
    """Cut well-formed text by UTF-16 offsets; half an emoji comes out as U+FFFD."""
    units = text.encode("utf-16-le")
    return units[2 * start : None if end is None else 2 * end].decode("utf-16-le", "replace")
