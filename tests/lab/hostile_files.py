"""Malicious PDFs, and documents that consist of one hostile character sequence."""

import zlib
from collections.abc import Iterator

from tests.bot.documents.pdfs import bomb, content_pdf, encrypted, pdf, slow_pdf

_MB = 2**20
_CHARS = 500_000
_UNITS = (
    *(".", "!?…", "。", ". ", "a. ", "\n", "\n\n", " ", "\t", "- ", "> ", "# ", "# a\n", "```\n"),
    *("~~~\n", "`", "|", "[", "](", "<", "<a>", "&amp;", "$", "\\", "*", "_", "é", "e\u0301"),
    *("\u0301", "\u200d", "\u200b", "😀", "🇩", "👨\u200d👩\u200d", "中", "ก", "ب", "a", "a-\n"),
    *("a\n", "1. ", '."'),
)


def documents() -> Iterator[tuple[str, bytes]]:
    """Yield names and texts of 500,000 characters; each text repeats one sequence."""
    for unit in _UNITS:
        yield repr(unit), (unit * (_CHARS // len(unit))).encode()


def pdfs() -> Iterator[tuple[str, bytes]]:
    """Yield names and PDFs that cost much time or memory, or are malformed."""
    yield from _bombs()
    yield from _operators()
    yield from _broken()


def _bombs() -> Iterator[tuple[str, bytes]]:
    once = zlib.compress(b" " * (400 * _MB), 9)
    yield "Flate, 400 MB", content_pdf(once, "/Filter /FlateDecode")
    yield "Flate twice, 400 MB", bomb(400 * _MB)
    run = b"\x81 " * (2 * _MB)
    yield "RunLength, 256 MB", content_pdf(run, "/Filter /RunLengthDecode")
    packed = zlib.compress(run, 9)
    yield "Flate of RunLength", content_pdf(packed, "/Filter [/FlateDecode /RunLengthDecode]")
    yield "ASCII85 of zeros", content_pdf(b"z" * (8 * _MB) + b"~>", "/Filter /ASCII85Decode")
    yield "ASCIIHex", content_pdf(b"20" * (8 * _MB) + b">", "/Filter /ASCIIHexDecode")
    yield "LZW of noise", content_pdf(bytes(range(256)) * 40_000, "/Filter /LZWDecode")
    many = "/Filter [" + "/FlateDecode " * 5_000 + "]"
    yield "5,000 filters", content_pdf(once, many)
    predictor = "/Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns 99999999 >>"
    yield "a wide predictor", content_pdf(zlib.compress(b"\2" * (20 * _MB), 9), predictor)


def _operators() -> Iterator[tuple[str, bytes]]:
    for operator in (
        "() Tj",
        "q",
        "q Q",
        "BT ET",
        "1 0 0 1 0 0 cm",
        "[(a)] TJ",
        "/F1 1 Tf",
        "BI EI",
    ):
        shown = zlib.compress(f"BT {operator} ".encode() * 800_000, 9)
        yield f"800,000 times {operator}", content_pdf(shown, "/Filter /FlateDecode")
    for opened in ("[", "<<", "("):
        yield f"200,000 times {opened}", content_pdf(opened.encode() * 200_000)
    yield "300 pages of one stream", slow_pdf()


def _broken() -> Iterator[tuple[str, bytes]]:
    whole = pdf("words")
    yield "pages within themselves", whole.replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]")
    yield "a page as its own content", whole.replace(b"/Contents 5 0 R", b"/Contents 4 0 R")
    yield "a million pages", whole.replace(b"/Count 1", b"/Count 1000000")
    yield "a cross-reference within itself", whole.replace(b"/Size", b"/Prev 9 /Size")
    yield "no cross-references", whole.partition(b"xref")[0]
    yield "an array 100,000 deep", whole.replace(b"[0 0 600 800]", b"[" * 100_000)
    yield "a password", encrypted(whole, "secret")
    yield "half a file", whole[: len(whole) // 2]
