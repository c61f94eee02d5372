"""Takes pages of a PDF as pictures: `pdf_pictures.py PAGES PIXELS [PAGE ...] MB SECONDS`.

It runs in a process of its own, like `pdf_text`. A scanned page is one picture, which the file
holds; it is taken out, not drawn. It tries the named pages, or all, until it has enough. Pages that
are drawn in another way are left out, and so are pages for which there is no time. It writes
`{"pages": [{"page": …, "jpeg": …, "width": …, "height": …}, …]}`.
"""

import io
import math
import sys
import time
from typing import Any

import pypdf.filters
import pypdf.generic._image_xobject  # noqa: F401 - pypdf would load it when no file can be opened
from PIL import Image
from pypdf import PageObject, PdfReader

from bot.parsing.answers import answer
from bot.parsing.picture import load_codecs, small_jpeg

_MIN_SHARE = 0.5  # of a page that its picture fills
_MAX_STATED_PIXELS = 50_000_000
_MAX_PAGE_BYTES = 2**20
_QUARTER = 90


def _read(content: bytes, max_pages: int, max_pixels: int, *wanted: int) -> dict[str, object]:
    cpu_s = int(sys.argv[-1]) / 2
    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted:
        reader.decrypt("")
    pages: list[dict[str, object]] = []
    for number in wanted or range(1, len(reader.pages) + 1):
        if len(pages) == max_pages or time.process_time() > cpu_s:
            break
        try:
            picture = _picture(reader.pages[number - 1])
            if picture is not None:
                pages.append({"page": number, **small_jpeg(picture, max_pixels, _MAX_PAGE_BYTES)})
        except Exception:  # noqa: BLE001, S112 - one damaged page does not cost the others
            continue
    return {"pages": pages}


def _picture(page: PageObject) -> Image.Image | None:
    """Return the picture that fills a page, upright; None if there is none."""
    placed: dict[str, list[float]] = {}

    def note(operator: bytes, operands: list[object], matrix: list[float], _: object) -> None:
        if operator == b"Do":
            placed[str(operands[0])] = matrix

    page.extract_text(visitor_operand_before=note)
    whole = abs(float(page.mediabox.width) * float(page.mediabox.height)) or 1
    resources: Any = page["/Resources"]
    objects = resources["/XObject"]
    for name, (a, b, c, d, *_) in placed.items():
        if abs(a * d - b * c) < _MIN_SHARE * whole:
            continue
        stored = objects[name].get_object()
        is_picture = stored["/Subtype"] == "/Image"
        if not is_picture or stored["/Width"] * stored["/Height"] > _MAX_STATED_PIXELS:
            continue
        filters = stored.get("/Filter")
        last = filters[-1] if isinstance(filters, list) and filters else filters
        if last == "/DCTDecode":  # so that only as much of it is decoded as is needed
            found: Image.Image | None = Image.open(io.BytesIO(stored.get_data()), formats=("JPEG",))
        else:
            found = page.images[name].image
        turn = round(math.degrees(math.atan2(b, a)) / _QUARTER) * _QUARTER - page.rotation
        return found.rotate(turn, expand=True) if found and turn % 360 else found
    return None


if __name__ == "__main__":
    load_codecs()
    Image.init()  # a scan may have any format
    answer(_read)
