"""Makes a big picture smaller, in a process of its own: `small_picture.py PIXELS MB SECONDS`.

The bot decodes pictures only in such processes. The answer is a JPEG, without anything else of the
file.
"""

import io
import math
import sys
from base64 import b64encode

from PIL import Image, ImageOps

from bot.documents.parsing import answer

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
_QUALITY = 85


def main(max_pixels: int, memory_mb: int, cpu_s: int) -> None:
    """Write `{"jpeg": "<base64>", "width": …, "height": …}` or `{"refused": "<reason>"}`."""
    Image.init()  # afterwards nothing can be opened
    answer(lambda content: _read(content, max_pixels), memory_mb, cpu_s)


def _read(content: bytes, max_pixels: int) -> dict[str, object]:
    with Image.open(io.BytesIO(content), formats=_FORMATS) as picture:
        return small_jpeg(picture, max_pixels)


def small_jpeg(picture: Image.Image, max_pixels: int) -> dict[str, object]:
    """Return a picture as a JPEG of at most `max_pixels`, upright and on white."""
    factor = min(1.0, math.sqrt(max_pixels / (picture.width * picture.height)))
    size = max(1, int(picture.width * factor)), max(1, int(picture.height * factor))
    if picture.mode in ("P", "1"):
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    picture.thumbnail(size, reducing_gap=2.0)
    upright = ImageOps.exif_transpose(picture)
    if upright.has_transparency_data:
        with_alpha = upright.convert("RGBA")
        upright = Image.new("RGB", upright.size, "white")
        upright.paste(with_alpha, mask=with_alpha)
    file = io.BytesIO()
    upright.convert("RGB").save(file, "JPEG", quality=_QUALITY)
    width, height = upright.size
    return {"jpeg": b64encode(file.getvalue()).decode(), "width": width, "height": height}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
