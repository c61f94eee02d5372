"""Pictures that anybody may have made. The bot's own process looks at their first bytes only."""

from base64 import b64decode
from pathlib import Path
from typing import Literal

from bot.parsing.answers import NotRead
from bot.parsing.processes import Parser, parse
from memory.message import Picture

MAX_PICTURE_BYTES = 20 * 2**20  # Telegram lets bots fetch files up to this size
MAX_SHOWN_BYTES = 2**20
"""A larger picture becomes a JPEG of at most so many bytes before a model sees it."""
MAX_PIXELS = 2_000_000  # models make larger pictures smaller anyway
ANY_SIZE = 2**62
_READER = Parser(
    Path(__file__).with_name("picture.py"), MAX_PICTURE_BYTES, 2 * MAX_SHOWN_BYTES, 224, 5
)


def format_by_signature(content: bytes) -> Literal["JPEG", "PNG", "WEBP", "GIF"] | None:
    """Return the format whose files begin like this one; None if it is no picture."""
    if content.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    return "WEBP" if content[:4] + content[8:12] == b"RIFFWEBP" else None


async def read_picture(
    content: bytes, max_bytes: int = MAX_SHOWN_BYTES, max_pixels: int = MAX_PIXELS
) -> Picture:
    """Return a picture of at most this size, as a model may see it; raise `NotRead`.

    Only the header is read of one that is not too large: `ANY_SIZE` takes every picture as it is.

    The reason is "too_big" for too many bytes or pixels, or if reading takes too much memory or
    time, and "damaged" for everything else.
    """
    format_ = format_by_signature(content)
    if format_ is None:
        raise NotRead("damaged")
    try:
        read = await parse(_READER, content, max_pixels, max_bytes)
    except NotRead as why:
        is_big = why.reason in ("too_big", "too_long", "stopped")
        raise NotRead("too_big" if is_big else "damaged") from None
    width, height = int(read["width"]), int(read["height"])
    if "jpeg" in read:
        return Picture(0, b64decode(read["jpeg"]), "image/jpeg", width, height)
    return Picture(0, content, f"image/{format_.lower()}", width, height)
