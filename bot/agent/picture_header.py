"""Reads the header of a picture. Nothing of the picture itself is decoded."""

import warnings
from collections.abc import Sequence
from io import BytesIO

from PIL import Image

_UNREADABLE = (OSError, SyntaxError, ValueError, ArithmeticError, LookupError)
"""What Pillow raises for a header that makes no sense."""


def header_of(content: bytes, formats: Sequence[str]) -> tuple[str, int, int] | None:
    """Return Pillow's name of the format, and width and height in pixels; None for no picture.

    Only `formats` are tried. Raise `Image.DecompressionBombError` for far too many pixels.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(BytesIO(content), formats=tuple(formats)) as header:
                return header.format or "", *header.size
    except _UNREADABLE:
        return None
