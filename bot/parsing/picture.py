"""Reads a picture, in a process of its own: `picture.py PIXELS BYTES MB SECONDS`.

A picture with more pixels or bytes, or one that models would not see as people do, becomes a JPEG
within these bounds, without anything else of the file. Of any other picture only the header is
read. The process writes `{"width": …, "height": …}`, and `"jpeg": "<base64>"` for a new picture.
"""

import io
import math
import warnings
from base64 import b64encode

# Pillow would import these two later, when no file can be opened: WebP while it tries all its
# formats, MPO for a JPEG with a second picture.
from PIL import Image, ImageOps, MpoImagePlugin, WebPImagePlugin  # noqa: F401
from PIL.ExifTags import Base

from bot.parsing.answers import NotRead, answer

_FOR_MODELS = ("JPEG", "PNG", "WEBP", "GIF")
_MAX_STATED_PIXELS = 50_000_000
"""Of a picture that is decoded. A JPEG of this size fits into the process, a PNG up to 24 million
pixels; a larger one is refused when the memory is full."""
_PLAIN_MODES = ("RGB", "L", "P", "1")
_QUALITIES = (85, 60, 40)
_MIN_PIXELS = 10_000


def _read(content: bytes, max_pixels: int, max_bytes: int) -> dict[str, object]:
    try:
        with Image.open(io.BytesIO(content), formats=_FOR_MODELS) as picture:
            pixels = picture.width * picture.height
            # A caller that accepts any size gets the file as it is.
            is_small = pixels <= max_pixels and len(content) <= max_bytes
            if is_small and (max_pixels > _MAX_STATED_PIXELS or _is_plain(picture)):
                return {"width": picture.width, "height": picture.height}
            if pixels > _MAX_STATED_PIXELS:
                raise NotRead("too_big")
            return small_jpeg(picture, max_pixels, max_bytes)
    except Image.DecompressionBombError:
        raise NotRead("too_big") from None


def _is_plain(picture: Image.Image) -> bool:
    """Tell whether a picture is upright, opaque, still, and has no colors for printing only."""
    is_still = picture.format == "MPO" or not getattr(picture, "is_animated", False)
    is_opaque = picture.mode in _PLAIN_MODES and not picture.has_transparency_data
    return is_still and is_opaque and picture.getexif().get(Base.Orientation) not in range(2, 9)


def load_codecs() -> None:
    """Load what reading and writing pictures needs, while files can still be opened."""
    for format_ in _FOR_MODELS:
        file = io.BytesIO()
        Image.new("P", (1, 1)).convert("RGB").save(file, format_)
        with Image.open(file) as picture:
            small_jpeg(picture, 1, 1)


def small_jpeg(picture: Image.Image, max_pixels: int, max_bytes: int) -> dict[str, object]:
    """Return a picture as a JPEG within both bounds, upright and on white."""
    factor = min(1.0, math.sqrt(max_pixels / (picture.width * picture.height)))
    size = max(1, int(picture.width * factor)), max(1, int(picture.height * factor))
    if picture.mode in ("P", "1"):
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    picture.thumbnail(size, reducing_gap=2.0)
    picture = ImageOps.exif_transpose(picture)
    if picture.mode.startswith("I"):  # 16 bits of gray: almost all would be white
        picture = picture.convert("I").point(lambda gray: gray / 256).convert("L")
    if picture.has_transparency_data:
        with_alpha = picture.convert("RGBA")
        picture = Image.new("RGB", picture.size, "white")
        picture.paste(with_alpha, mask=with_alpha)
    picture = picture.convert("RGB")

    while True:
        for quality in _QUALITIES:
            file = io.BytesIO()
            picture.save(file, "JPEG", quality=quality)
            width, height = picture.size
            if file.tell() <= max_bytes or width * height <= _MIN_PIXELS:
                jpeg = b64encode(file.getvalue()).decode()
                return {"jpeg": jpeg, "width": width, "height": height}
        picture = picture.reduce(2)


if __name__ == "__main__":
    load_codecs()
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    answer(_read)
