"""A picture's header decides whether a model gets it."""

import struct
import zlib
from io import BytesIO

import pytest
from PIL import ExifTags, Image

from bot.turn.pictures import NotSeen, made_smaller, picture_of, with_descriptions


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
        (png_that_states(10_000, 5_001), "too_big"),
        (png_that_states(30_000, 30_000), "too_big"),
        (png_that_states(2**31 - 1, 2**31 - 1), "too_big"),
    ],
)
def test_what_is_no_picture_or_states_too_many_pixels_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(NotSeen, match=why):
        picture_of(content)


def test_a_photo_without_a_description_keeps_its_mark() -> None:
    seen = with_descriptions([(1, "[photo]"), (2, "[photo]")], {2: "A cat."})
    assert seen == ((1, "[photo]"), (2, "[photo] A cat."))


async def test_a_big_picture_is_made_smaller_upright_and_on_white() -> None:
    file = BytesIO()
    rotated = Image.Exif()
    rotated[ExifTags.Base.Orientation] = 6
    Image.new("RGB", (3_000, 2_000), "blue").save(file, "JPEG", exif=rotated)
    small = await made_smaller(file.getvalue())
    assert (small.mime_type, small.width, small.height) == ("image/jpeg", 1_154, 1_731)
    with Image.open(BytesIO(small.content)) as shown:
        assert shown.size == (1_154, 1_731)
        assert not shown.getexif()

    file = BytesIO()
    Image.new("RGBA", (3_000, 1_000), (255, 0, 0, 0)).save(file, "PNG")
    with Image.open(BytesIO((await made_smaller(file.getvalue())).content)) as shown:
        assert shown.getpixel((5, 5)) == (255, 255, 255)


async def test_what_fills_the_memory_or_is_damaged_is_refused() -> None:
    """Only its process is stopped; the limit holds for it and not for the bot."""
    with pytest.raises(NotSeen, match="too_big"):
        await made_smaller(png_of_zeros(10_000, 10_000))
    with pytest.raises(NotSeen, match="broken"):
        await made_smaller(png_that_states(7_000, 7_000))
    with pytest.raises(NotSeen, match="broken"):
        await made_smaller(b"no picture")


def png_of_zeros(width: int, height: int) -> bytes:
    """Return a whole PNG file of a black picture, a thousandth of its size."""

    def chunk(name: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    packing = zlib.compressobj(1)
    rows = [packing.compress(bytes(3 * width + 1)) for _ in range(height)]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = b"".join((*rows, packing.flush()))
    parts = chunk(b"IHDR", header), chunk(b"IDAT", packed), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
