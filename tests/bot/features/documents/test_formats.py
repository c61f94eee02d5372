"""Files from anybody: text is read; everything else is refused in time, with a reason."""

import asyncio
import os
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

from bot.features.documents.formats import Format, Limits, format_of, read_sections
from bot.language.catalogue import Catalogue
from bot.parsing.answers import NotRead
from bot.parsing.processes import REASONS
from memory.documents import Section
from tests.bot.parsing.pdfs import bomb, encrypted, form, pdf
from tests.work import stretch

LIMITS = Limits(pages=3, chars=1_000)


async def read(content: bytes, format_: Format, limits: Limits = LIMITS) -> list[Section]:
    return await read_sections(content, format_, limits)


async def reason(content: bytes, format_: Format, limits: Limits = LIMITS) -> str:
    with pytest.raises(NotRead) as refusal:
        await read(content, format_, limits)
    return refusal.value.reason


@pytest.mark.parametrize(
    ("name", "mime_type", "expected"),
    [
        ("notes.txt", "text/plain", "text"),
        ("notes.md", "text/plain", "markdown"),
        ("notes.md", "", "markdown"),
        ("notes", "text/markdown; charset=utf-8", "markdown"),
        ("REPORT.PDF", "application/pdf", "pdf"),
        ("report.txt", "application/pdf", "pdf"),
        ("A.DOCX", "", "docx"),
        ("letter.odt", "application/vnd.oasis.opendocument.text", "docx"),
        ("talk.pptx", "application/octet-stream", "pptx"),
        ("a", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
        ("list.csv", "text/plain", "csv"),
        ("list.csv", "text/comma-separated-values", "csv"),
        ("list.tsv", "", "csv"),
        ("page.htm", "text/html", "html"),
        ("a.py", "text/x-python", "text"),
        ("data.json", "application/json", "text"),
        ("server.log", "application/octet-stream", "text"),
        ("novel.epub", "application/epub+zip", "epub"),
    ],
)
def test_the_type_or_the_name_decides_the_format(name: str, mime_type: str, expected: str) -> None:
    assert format_of(name, mime_type) == expected


@pytest.mark.parametrize(
    ("name", "mime_type"),
    [
        ("a.zip", "application/zip"),
        ("a.exe", ""),
        ("file", "image/png"),
        ("a.exe", ".pdf"),
        ("a", "text/rtf"),
    ],
)
def test_a_file_of_another_type_is_refused(name: str, mime_type: str) -> None:
    with pytest.raises(NotRead, match="type"):
        format_of(name, mime_type)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
async def test_text_is_read_in_every_unicode_encoding(encoding: str) -> None:
    assert await read("Grüße, мир".encode(encoding), "text") == [Section("Grüße, мир")]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Größe – 3 €, «créé», ¿qué?", "cp1252"),
        ("Ayşe Çağrı", "cp1254"),
        ("Ім’я: Їжак", "cp1251"),
    ],
)
async def test_text_that_windows_saved_for_some_countries_is_read(text: str, encoding: str) -> None:
    assert await read(text.encode(encoding), "text") == [Section(text)]


@pytest.mark.parametrize(
    ("content", "format_", "why"),
    [
        ("Zażółć, może".encode("cp1250"), "text", "letters"),
        ("Καλημέρα".encode("cp1253"), "text", "letters"),
        ("姓名;金额".encode("gbk"), "text", "letters"),
        ("Az idõ szép".encode("cp1252"), "text", "letters"),
        ("привет, мир".encode("koi8-r"), "text", "letters"),
        (b"%b%b\xff" % ("Größe".encode(), b" a" * 400), "text", "letters"),
        (b"\xff\xfea", "text", "letters"),
        (b"PK\x00\x01" * 300, "text", "type"),
        (b" \n\t ", "text", "no_text"),
        (b" \n\t ", "markdown", "no_text"),
        (b"a" * 1_001, "text", "too_long"),
        (encrypted(pdf("secret"), "password"), "pdf", "encrypted"),
        (pdf("", ""), "pdf", "no_text"),
        (pdf(*"abcd"), "pdf", "too_long"),
        (pdf("a " * 600), "pdf", "too_long"),
        (b"no PDF", "pdf", "damaged"),
        (b"%PDF-1.4\n", "pdf", "damaged"),
        (b"%PDF-1.7\n" + b"\x00\xff<<" * 9_000, "pdf", "damaged"),
    ],
    ids=[
        *("Polish", "Greek", "Chinese", "Hungarian", "Russian", "one wrong byte"),
        "half a character",
        *("binary", "blank text", "blank markdown", "a long text"),
        *("a password", "pictures", "many pages", "many characters"),
        *("text as PDF", "a header", "noise"),
    ],
)
async def test_a_file_that_cannot_be_read_is_refused_with_the_reason(
    content: bytes, format_: Format, why: str
) -> None:
    assert await reason(content, format_) == why


async def test_the_sections_of_a_file_are_made_beside_the_event_loop() -> None:
    most, _ = await stretch(read(b"<h1>a</h1>" * 4_000, "html", Limits()))
    assert most < 2_000


async def test_a_section_of_markdown_is_a_heading_with_the_text_below_it() -> None:
    text = "Before.\n# One ##\nA\n```\n# no heading\n```\n## Two\nB"
    assert await read(text.encode(), "markdown") == [
        Section("Before.\n"),
        Section("# One ##\nA\n```\n# no heading\n```\n", "One"),
        Section("## Two\nB", "Two"),
    ]


async def test_a_section_of_a_pdf_is_a_page() -> None:
    texts = "The cat sat.", "", "The end."
    pages = [Section(text, f"page {number}") for number, text in enumerate(texts, start=1)]
    assert await read(pdf(*texts), "pdf") == pages


async def test_line_breaks_inside_a_sentence_are_removed() -> None:
    (page,) = await read(pdf("The remark-\nable cat\nsat there.\nIt slept."), "pdf")
    assert page.text == "The remarkable cat sat there.\nIt slept."


async def test_what_people_filled_into_a_pdf_is_read() -> None:
    (page,) = await read(form(), "pdf")
    filled_in = ("Name: /home/ann", "Married: Yes", "Speaks: de, en", "Town: Graz", "Call me.")
    assert page.text == "\n- ".join(("Application", *filled_in))
    lost = form().replace(b"/Annots [", b"/Annots 99 0 R /Lost [")  # refers to nothing
    assert await read(lost, "pdf") == [Section("Application", "page 1")]


async def test_a_pdf_that_only_forbids_printing_is_read() -> None:
    assert await read(encrypted(pdf("open"), ""), "pdf") == [Section("open", "page 1")]


async def test_a_decompression_bomb_is_refused_before_it_is_unpacked() -> None:
    async def parsers_cpu_s(megabytes: int) -> float:
        content = bomb(megabytes * 2**20)
        before = getrusage(RUSAGE_CHILDREN).ru_utime
        assert await reason(content, "pdf") in ("damaged", "no_text")
        return getrusage(RUSAGE_CHILDREN).ru_utime - before

    assert await parsers_cpu_s(400) < 2 * await parsers_cpu_s(40)


async def test_reading_a_slow_pdf_is_given_up_at_the_time_limit() -> None:
    limits = Limits(pages=3, chars=1_000, parser_s=0.01, parser_mb=512)
    assert await reason(pdf("slow"), "pdf", limits) == "stopped"


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split())


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("after_s", [0, 0.1])
async def test_cancelled_reading_leaves_no_process(after_s: float) -> None:
    before = children()
    reading = asyncio.create_task(read(pdf("slow"), "pdf"))
    await asyncio.sleep(after_s)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    async with asyncio.timeout(60):
        while children() - before:  # noqa: ASYNC110 - nothing signals the end of a process
            await asyncio.sleep(0.01)


def test_every_reason_has_a_sentence() -> None:
    catalogue = Catalogue()

    assert all(f"files.refused_{each}" in catalogue for each in REASONS)
