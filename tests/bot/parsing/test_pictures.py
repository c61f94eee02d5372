"""Pictures are read in a process of their own, and what a model sees of them is bounded."""

import struct
import zlib
from io import BytesIO
from typing import Any

import pytest
from PIL import ExifTags, Image

from bot.parsing.answers import NotRead
from bot.parsing.pictures import ANY_SIZE, MAX_SHOWN_BYTES, read_picture


def drawn(width: int, height: int, kind: str) -> bytes:
    picture = Image.new("RGB", (width, height))
    return saved(picture, kind, save_all=kind == "MPO", append_images=[picture])


def saved(picture: Image.Image, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def png_that_states(width: int, height: int, packed: bytes = bytes(4)) -> bytes:
    """Return a PNG file that states any size, and has these rows."""

    def chunk(name: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", packed), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def noise(width: int, height: int) -> bytes:
    return saved(Image.effect_noise((width, height), 99).convert("RGB"), "PNG")


@pytest.mark.parametrize("kind", ["JPEG", "MPO", "PNG", "WEBP", "GIF"])
async def test_a_small_picture_is_shown_as_it_is(kind: str) -> None:
    """An MPO is a JPEG with several pictures, as phones make it."""
    content = drawn(30, 20, kind)
    picture = await read_picture(content)
    mime_type = f"image/{kind.lower().replace('mpo', 'jpeg')}"
    assert (picture.mime_type, picture.width, picture.height) == (mime_type, 30, 20)
    assert picture.content == content


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "damaged"),
        (b"a photo", "damaged"),
        (drawn(30, 20, "PNG")[:20], "damaged"),
        (drawn(30, 20, "BMP"), "damaged"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "damaged"),
        (png_that_states(4_000, 4_000), "damaged"),
        (png_that_states(10_000, 5_001), "too_big"),
        (png_that_states(2**31 - 1, 2**31 - 1), "too_big"),
    ],
)
async def test_no_picture_or_too_many_pixels_are_refused(content: bytes, why: str) -> None:
    with pytest.raises(NotRead, match=why):
        await read_picture(content)


@pytest.mark.parametrize(("width", "height"), [(30, 20), (3_000, 2_000)])
async def test_a_picture_is_shown_upright_on_white_and_still(width: int, height: int) -> None:
    rotated = Image.Exif()
    rotated[ExifTags.Base.Orientation] = 6
    blue, clear = Image.new("RGB", (width, height), "blue"), Image.new("RGBA", (width, height))
    small = await read_picture(saved(blue, "JPEG", exif=rotated))
    assert small.mime_type == "image/jpeg"
    assert small.width < small.height
    with Image.open(BytesIO(small.content)) as shown:
        assert shown.size == (small.width, small.height)
        assert not shown.getexif()
    for content, color in (
        (saved(clear, "PNG"), (255, 255, 255)),
        (saved(blue.convert("CMYK"), "JPEG"), (0, 0, 254)),
        (saved(blue, "GIF", save_all=True, append_images=[clear.convert("RGB")]), (0, 0, 254)),
    ):
        picture = await read_picture(content)
        with Image.open(BytesIO(picture.content)) as shown:
            assert (shown.format, shown.mode) == ("JPEG", "RGB")
            assert shown.getpixel((5, 5)) == color


async def test_a_picture_of_many_bytes_becomes_one_of_few_whatever_its_size() -> None:
    heavy = drawn(100, 100, "JPEG") + bytes(5 * MAX_SHOWN_BYTES)
    picture = await read_picture(heavy)
    assert (picture.mime_type, picture.width, picture.height) == ("image/jpeg", 100, 100)
    assert len(picture.content) < 2_000
    noisy = noise(1_200, 1_000)
    assert len(noisy) > MAX_SHOWN_BYTES
    picture = await read_picture(noisy, 50_000)
    assert len(picture.content) <= 50_000


async def test_sixteen_bits_of_gray_do_not_become_white() -> None:
    gray = saved(Image.new("I;16", (3_000, 2_000), 32_768), "PNG")
    with Image.open(BytesIO((await read_picture(gray)).content)) as shown:
        assert shown.convert("L").getpixel((5, 5)) in range(120, 136)


async def test_what_fills_the_memory_is_refused() -> None:
    """Only its process is stopped; the limit holds for it and not for the bot."""
    with pytest.raises(NotRead, match="too_big"):
        await read_picture(png_of_zeros(10_000, 5_000))


async def test_a_parser_gets_half_of_a_small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = png_of_zeros(4_000, 3_000)
    assert (await read_picture(picture)).mime_type == "image/jpeg"
    monkeypatch.setattr("bot.parsing.processes.memory_mb", lambda: 200)
    with pytest.raises(NotRead, match="too_big"):
        await read_picture(picture)


async def test_a_header_of_many_segments_is_read_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "open", None)  # the bot's own process would fail
    content = b"\xff\xd8" + b"\xff\xe5\x00\x02" * 2**16
    with pytest.raises(NotRead):
        await read_picture(content)


async def test_only_the_header_tells_how_a_picture_of_a_tool_is_sent() -> None:
    content = png_that_states(10_000, 9_000)  # could not be decoded
    picture = await read_picture(content, ANY_SIZE, ANY_SIZE)
    assert (picture.mime_type, picture.width, picture.height) == ("image/png", 10_000, 9_000)
    assert picture.content == content
    with pytest.raises(NotRead, match="too_big"):
        await read_picture(png_that_states(60_000, 60_000), ANY_SIZE, ANY_SIZE)


def png_of_zeros(width: int, height: int) -> bytes:
    """Return a whole PNG file of a black picture, a thousandth of its size."""
    packing = zlib.compressobj(1)
    rows = [packing.compress(bytes(3 * width + 1)) for _ in range(height)]
    return png_that_states(width, height, b"".join((*rows, packing.flush())))
