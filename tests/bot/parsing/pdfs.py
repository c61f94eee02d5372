"""Small PDFs for tests: ordinary ones, and ones that attack their reader."""

import io
import zlib
from collections.abc import Sequence

from pypdf import PdfReader, PdfWriter


def pdf(*pages: str) -> bytes:
    """Return a PDF with a page for each text (Latin-1), a line for each line."""
    return _written([_page_text(page) for page in pages])


def bomb(nbytes: int) -> bytes:
    """Return a PDF whose page decompresses, in two layers, to `nbytes` bytes."""
    layers = zlib.compress(zlib.compress(b" " * nbytes, 1), 9)
    return _written([layers], "/Filter [/FlateDecode /FlateDecode]")


def slow_pdf(pages: int = 300, operators: int = 12_000) -> bytes:
    """Return a PDF of some 44 kB whose pages share one long stream that shows nothing."""
    shown = zlib.compress(b"BT /F1 12 Tf " + b"() Tj " * operators + b"ET", 9)
    one = _written([shown], "/Filter /FlateDecode")
    kids = b" ".join([b"4 0 R"] * pages)
    return one.replace(b"/Kids [4 0 R] /Count 1", b"/Kids [" + kids + b"] /Count %d" % pages)


def form() -> bytes:
    """Return a PDF form with a path, a ticked box, an empty one, choices, a signature, a note.

    The last but one has its value from above, and a parent of the last one is its own parent.
    """
    notes = (
        "/Subtype /Widget /FT /Tx /T (f1) /TU (Name) /V (/home/ann)",
        "/Subtype /Widget /FT /Btn /T (Married) /V /Yes",
        "/Subtype /Widget /FT /Btn /T (Retired) /V /Off",
        "/Subtype /Widget /FT /Ch /T (Speaks) /V [(de) (en)]",
        "/Subtype /Widget /FT /Sig /T (Signature) /V << /Type /Sig /Data 1 0 R >>",
        "/Subtype /Widget /FT /Tx /T (kid) /Parent << /Parent << /TU (Town) /V (Graz) >> >>",
        "/Subtype /Widget /T (loop) /Parent 3 0 R",
        "/Subtype /FreeText /Contents (Call me.)",
    )
    annotations = " ".join(f"<< /Type /Annot {each} /Rect [0 0 9 9] >>" for each in notes)
    own = f"/Annots [5 {annotations}] /Contents 5".encode()
    looped = pdf("Application").replace(b"/BaseFont", b"/Parent 3 0 R /BaseFont")
    return looped.replace(b"/Contents 5", own)


def encrypted(content: bytes, password: str) -> bytes:
    """Return a PDF that opens with a password; "" only forbids printing and the like."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(content)))
    writer.encrypt(password, "owner", algorithm="RC4-128")
    return saved(writer)


def saved(writer: PdfWriter) -> bytes:
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def _page_text(text: str) -> bytes:
    lines = (line.replace("\\", "").replace("(", "").replace(")", "") for line in text.split("\n"))
    shown = " 0 -14 Td ".join(f"({line}) Tj" for line in lines)
    return f"BT /F1 12 Tf 20 700 Td {shown} ET".encode("latin-1") if text else b""


def _written(contents: Sequence[bytes], filters: str = "") -> bytes:
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, content in enumerate(contents):
        own = 5 + 2 * number
        page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800]"
        page += f" /Resources << /Font << /F1 3 0 R >> >> /Contents {own} 0 R >>"
        head = f"<< /Length {len(content)} {filters} >>\nstream\n".encode()
        objects += [page.encode(), head + content + b"\nendstream"]
    written, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(written))
        written += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return written + tail.encode() + f"startxref\n{len(written)}\n%%EOF\n".encode()
