"""Scanned PDFs: the pictures of their first pages are read by a model."""

import io
from contextlib import suppress

import pytest
from PIL import Image, ImageDraw
from pypdf import PdfReader, PdfWriter

from bot.features.documents.scans import ScannedPages, ScanReader
from bot.parsing.answers import NotRead
from memory.documents import Section
from memory.message import Picture
from memory.scopes.changes import NotWritten
from memory.store.keys import Scope
from tests.bot.parsing.pdfs import bomb, pdf

HERE = Scope.of_chat(7)


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
    turned = io.BytesIO()
    writer.write(turned)
    return turned.getvalue()


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
    found = await ScanReader(eyes.read).pages(HERE, "f1", scan(1, mode))
    assert found == ScannedPages((Section("A bill.", "page 1"),), (1,), 1)
    [picture] = eyes.seen
    assert (picture.mime_type, picture.detail) == ("image/jpeg", "high")
    with Image.open(io.BytesIO(picture.content)) as shown:
        row = shown.convert("L").crop((0, 500, shown.width, 501)).tobytes()
    assert (row[100] < 50, row[700] > 200) == (True, True)


async def test_a_page_is_turned_as_it_is_shown_and_made_smaller() -> None:
    eyes = Eyes("x")
    await ScanReader(eyes.read).pages(HERE, "f1", scan(1, "L", 300, rotated=90))
    [picture] = eyes.seen
    assert picture.width > picture.height
    assert picture.width * picture.height <= 2_000_000
    with Image.open(io.BytesIO(picture.content)) as shown:
        assert shown.convert("L").getpixel((500, 100)) in range(50)  # left is above now


async def test_the_first_five_pages_are_read_and_empty_ones_left_out() -> None:
    eyes = Eyes("one", "", "three", "four", "five")
    reader = ScanReader(eyes.read)
    found = await reader.pages(HERE, "f1", scan(12))
    assert (found.numbers, found.count, len(eyes.seen)) == ((1, 3, 4, 5), 12, 5)
    assert (
        await reader.pages(HERE, "f1", b"") == found
    )  # a turn that starts again does not read again
    assert len(eyes.seen) == 5


async def test_an_erasure_drops_what_was_read_there_and_only_there() -> None:
    eyes = Eyes(*["A quokka."] * 4)
    reader, elsewhere = ScanReader(eyes.read), Scope.of_chat(8)
    for scope in (HERE, elsewhere):
        await reader.pages(scope, "f1", scan(1))
    reader.forget(HERE)
    await reader.pages(elsewhere, "f1", b"")
    assert len(eyes.seen) == 2
    reader.forget(elsewhere)
    assert "quokka" not in str(vars(reader))


async def test_a_turn_that_replaces_its_own_file_does_not_read_it_again() -> None:
    """Replacing erases older passages. An erasure by anybody else drops the result."""
    eyes = Eyes(*["A quokka."] * 3)
    reader = ScanReader(eyes.read)
    found = await reader.pages(HERE, "f1", scan(1))
    with reader.storing(HERE) as note_replaced:
        note_replaced()
    reader.forget(HERE)
    assert await reader.pages(HERE, "f1", b"") == found
    reader.forget(HERE)
    assert "quokka" not in str(vars(reader))

    await reader.pages(HERE, "f1", scan(1))
    with reader.storing(HERE):
        pass
    reader.forget(HERE)
    assert "quokka" not in str(vars(reader))
    await reader.pages(HERE, "f1", scan(1))
    with suppress(NotWritten), reader.storing(HERE):
        reader.forget(HERE)
        raise NotWritten
    assert "quokka" not in str(vars(reader))


async def test_what_was_erased_while_it_was_read_is_not_kept() -> None:
    async def read(_: Picture) -> str:
        reader.forget(HERE)
        return "A quokka."

    reader = ScanReader(read)
    await reader.pages(HERE, "f1", scan(1))
    assert "quokka" not in str(vars(reader))


async def test_a_model_that_cannot_see_is_shown_one_page() -> None:
    eyes = Eyes(None)
    with pytest.raises(NotRead, match="no_text"):
        await ScanReader(eyes.read).pages(HERE, "f1", scan(3))
    assert len(eyes.seen) == 1


@pytest.mark.parametrize("nbytes", [None, 10**8, 0])
async def test_a_file_without_scanned_pages_is_shown_to_nobody(nbytes: int | None) -> None:
    content = pdf("") if nbytes is None else bomb(nbytes) if nbytes else b"%PDF-1.4"
    eyes = Eyes()
    with pytest.raises(NotRead, match="no_text"):
        await ScanReader(eyes.read).pages(HERE, "f1", content)
    assert eyes.seen == []
