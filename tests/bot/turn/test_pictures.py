"""A picture's header decides whether a model gets it."""

import struct
import zlib
from io import BytesIO

import pytest
from PIL import Image

from bot.turn.pictures import NotSeen, picture_of, with_descriptions


def drawn(width: int, height: int, kind: str) -> bytes:
    file = BytesIO()
    Image.new("RGB", (width, height)).save(file, kind)
    return file.getvalue()


def png_that_states(width: int, height: int) -> bytes:
    """Return a file of 60 bytes that states any size."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 4) + b"IDAT" + bytes(8)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_the_header_gives_format_and_size(kind: str) -> None:
    picture = picture_of(drawn(30, 20, kind))
    assert (picture.mime_type, picture.width, picture.height) == (f"image/{kind.lower()}", 30, 20)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "broken"),
        (b"a photo", "broken"),
        (drawn(30, 20, "PNG")[:20], "broken"),
        (drawn(30, 20, "BMP"), "broken"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "broken"),
        (png_that_states(2_001, 1_000), "too_big"),
        (png_that_states(12_000, 12_000), "too_big"),
        (png_that_states(2**31 - 1, 2**31 - 1), "too_big"),
    ],
)
def test_what_is_no_picture_or_states_too_many_pixels_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(NotSeen, match=why):
        picture_of(content)


def test_a_photo_without_a_description_keeps_its_mark() -> None:
    seen = with_descriptions([(1, "[photo]"), (2, "[photo]")], {2: "A cat."})
    assert seen == ((1, "[photo]"), (2, "[photo] A cat."))
