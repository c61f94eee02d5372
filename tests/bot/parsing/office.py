"""Small files of the formats that libraries write, and malicious ones."""

import io
import re
import zipfile
from collections.abc import Callable, Mapping

import docx
import pptx
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl import Workbook

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book/content.opf"/></rootfiles></container>'
)


def word() -> bytes:
    """Return a Word file with a heading, text before and after a table."""
    document = docx.Document()
    document.add_paragraph("Before.")
    document.add_heading("Whales")
    table = document.add_table(2, 2)
    for at, text in enumerate(["Animal", "Tonnes", "Blue whale", "190"]):
        table.cell(at // 2, at % 2).text = text
    document.add_paragraph("After.")
    return _saved(document.save)


def word_of(xml: str) -> bytes:
    """Return a Word file with a header, this text, and a paragraph with a comment."""
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "Acme Ltd"
    document.add_comment(document.add_paragraph("Signed.").runs, "By whom?", "Ben")
    for at, block in enumerate(parse_xml(f"<w:body {nsdecls('w')}>{xml}</w:body>")):
        document.element.body.insert(at, block)
    return _saved(document.save)


def slides() -> bytes:
    """Return two slides; the second has a title, text, a table and notes."""
    shown = pptx.Presentation()
    shown.slides.add_slide(shown.slide_layouts[6]).shapes.add_textbox(0, 0, 9, 9).text = "Hello"
    slide = shown.slides.add_slide(shown.slide_layouts[1])
    slide.shapes.title.text = "Whales"
    slide.placeholders[1].text = "They sing."
    row = slide.shapes.add_table(1, 2, 0, 0, 99, 99).table
    row.cell(0, 0).text, row.cell(0, 1).text = "Blue whale", "190"
    slide.notes_slide.notes_text_frame.text = "Breathe."
    return _saved(shown.save)


def sheets() -> bytes:
    """Return a spreadsheet of two sheets, one of them empty; nothing has calculated its formula."""
    book = Workbook()
    book.create_sheet("Empty")
    sheet = book.worksheets[0]
    sheet.title = "Animals"
    for row in (["Animal", "Tonnes"], [], ["Blue whale", 190.0], [5, True, 1.5, '=A4&"!"']):
        sheet.append(row)
    sheet["C4"].number_format = "0.0%"
    sheet["A4"].number_format = r"0\%"  # it is only shown
    return _saved(book.save)


def strict(content: bytes) -> bytes:
    """Return an Office file as Office saves it as "Strict Open XML"."""
    with zipfile.ZipFile(io.BytesIO(content)) as usual:
        parts = {name: usual.read(name) for name in usual.namelist()}
    pattern, name = (
        rb"http://schemas.openxmlformats.org/(\w+)/2006/",
        rb"http://purl.oclc.org/ooxml/\1/",
    )
    return zipped({part: re.sub(pattern, name, xml) for part, xml in parts.items()})


def zipped(members: Mapping[str, str | bytes], base: bytes = b"") -> bytes:
    """Return a zip with these members, which replace those of another zip."""
    parts: dict[str, str | bytes] = {}
    if base:
        with zipfile.ZipFile(io.BytesIO(base)) as old:
            parts = {name: old.read(name) for name in old.namelist()}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**parts, **members}.items():
            archive.writestr(name, content)
    return written.getvalue()


def book(*chapters: str, **more: str) -> bytes:
    """Return an EPUB with these chapters; its manifest names them in reverse order."""
    items = "".join(
        f'<item id="c{at}" href="text/{at}%20c.xhtml" media-type="application/xhtml+xml"/>'
        for at in reversed(range(len(chapters)))
    )
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
        f"<spine>{spine}</spine></package>"
    )
    pages = {f"book/text/{at} c.xhtml": text for at, text in enumerate(chapters)}
    own = {"META-INF/container.xml": CONTAINER, "book/content.opf": package}
    return zipped({"mimetype": "application/epub+zip"} | own | pages | more)


def entities(root: str) -> str:
    """Return XML whose entities expand to a billion words inside an element."""
    declared = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, 10))
    return f'<!DOCTYPE x [<!ENTITY e0 "lol">{declared}]>{root.replace("*", "&e9;")}'


def _saved(save: Callable[[io.BytesIO], None]) -> bytes:
    written = io.BytesIO()
    save(written)
    return written.getvalue()
