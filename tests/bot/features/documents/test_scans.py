"""Scanned PDFs: the pictures of their first pages are read by a model."""

import io

import pytest
from PIL import Image, ImageDraw
from pypdf import PdfReader, PdfWriter

from bot.features.documents.scans import read_scan, take_out
from bot.parsing.answers import NotRead
from memory.documents import Section
from memory.message import Picture
from tests.bot.parsing.pdfs import bomb, pdf, saved


def scan(pages: int = 1, mode: str = "L", dpi: int = 100, rotated: int = 0) -> bytes:
    """Return a scan: the left half of each page is black. Its mode decides how it is packed."""
    width, height = int(8.3 * dpi), int(11.7 * dpi)
    drawn = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(drawn).rectangle((0, 0, width // 2, height), fill="black")
    page, file = drawn.convert(mode), io.BytesIO()
    page.save(file, "PDF", save_all=True, append_images=[page] * (pages - 1), resolution=dpi)
    if not rotated:
        return file.getvalue()
    writer = PdfWriter(clone_from=PdfReader(file))
    writer.pages[0].rotate(rotated)
    return saved(writer)


def partly_scanned(*texts: str) -> bytes:
    """Return a PDF with a page of each text, and a scan of two pages with a line of the scanner."""
    writer = PdfWriter()
    for content in (pdf(*texts), scan(2)):
        writer.append(io.BytesIO(content))
    for page in writer.pages[len(texts) :]:
        page.merge_page(PdfReader(io.BytesIO(pdf("Scanned with an app"))).pages[0])
    return saved(writer)


class Eyes:
    """Reads pictures; `texts` are what it reads, None if it cannot see."""

    def __init__(self, *texts: str | None) -> None:
        self.texts = list(texts)
        self.seen: list[Picture] = []

    async def read(self, picture: Picture) -> str | None:
        self.seen.append(picture)
        return self.texts[len(self.seen) - 1]


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "RGBA", "CMYK"])
async def test_pages_of_every_packing_are_taken_out(mode: str) -> None:
    eyes = Eyes("A bill.")
    read = await read_scan(eyes.read, await take_out(scan(1, mode)))
    assert read == [Section("A bill.", "page 1")]
    [picture] = eyes.seen
    assert (picture.mime_type, picture.detail) == ("image/jpeg", "high")
    with Image.open(io.BytesIO(picture.content)) as shown:
        row = shown.convert("L").crop((0, 500, shown.width, 501)).tobytes()
    assert (row[100] < 50, row[700] > 200) == (True, True)


async def test_a_page_is_turned_as_it_is_shown_and_made_smaller() -> None:
    [picture] = (await take_out(scan(1, "L", 300, rotated=90))).values()
    assert picture.width > picture.height
    assert picture.width * picture.height <= 2_000_000
    with Image.open(io.BytesIO(picture.content)) as shown:
        assert shown.convert("L").getpixel((500, 100)) in range(50)  # left is above now


async def test_the_first_five_pages_are_read_and_empty_ones_left_out() -> None:
    eyes = Eyes("one", "", "three", "four", "five")
    read = await read_scan(eyes.read, await take_out(scan(12)))
    assert [each.place for each in read] == ["page 1", "page 3", "page 4", "page 5"]
    assert len(eyes.seen) == 5


async def test_a_model_that_cannot_see_is_shown_one_page() -> None:
    eyes = Eyes(None)
    with pytest.raises(NotRead, match="no_text"):
        await read_scan(eyes.read, await take_out(scan(3)))
    assert len(eyes.seen) == 1


@pytest.mark.parametrize("nbytes", [None, 10**8, 0])
async def test_a_file_without_scanned_pages_is_shown_to_nobody(nbytes: int | None) -> None:
    content = pdf("") if nbytes is None else bomb(nbytes) if nbytes else b"%PDF-1.4"
    with pytest.raises(NotRead, match="no_text"):
        await take_out(content)
