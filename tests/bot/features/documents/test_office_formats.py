"""Word, PowerPoint, Excel, CSV, HTML and EPUB: read with their places, and bounded."""

import io
import zipfile

import pytest

from bot.features.documents.formats import Format, Limits
from bot.parsing.answers import Sections
from bot.parsing.html_text import add_xml, xml_of
from memory.documents import Section
from tests.bot.features.documents.test_formats import read, reason
from tests.bot.parsing.office import book, entities, sheets, slides, strict, word, word_of, zipped

LIMITS = Limits()
MB = 2**20
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
SHEET = "xl/worksheets/sheet1.xml"
SHEET_XML = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    '<dimension ref="A1:XFD1048576"/><sheetData>{}</sheetData></worksheet>'
)


async def test_headings_slides_and_sheets_are_sections_and_a_row_of_a_table_is_a_line() -> None:
    """A slide has its notes, and an empty sheet is left out."""
    assert await read(word(), "docx", LIMITS) == [
        Section("Before."),
        Section("Whales\nAnimal | Tonnes\nBlue whale | 190\nAfter.", "Whales"),
    ]
    assert await read(slides(), "pptx", LIMITS) == [
        Section("Hello", "slide 1"),
        Section("Whales\nThey sing.\nBlue whale | 190\nBreathe.", "slide 2: Whales"),
    ]
    assert await read(sheets(), "xlsx", LIMITS) == [
        Section('Animal | Tonnes\nBlue whale | 190\n5 | True | 150% | =A4&"!"', "sheet Animals")
    ]


run = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>".format
field = "<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>".format
styled = "<w:pPr><w:pStyle w:val='{}'/></w:pPr>".format
BOX = f"<w:r><w:pict><w:txbxContent><w:p>{run('A box')}</w:p></w:txbxContent></w:pict></w:r>"


async def test_a_word_file_says_what_people_see_in_it() -> None:
    changed = f"<w:del><w:r><w:delText>800</w:delText></w:r></w:del><w:ins>{run('950')}</w:ins>"
    line = f"{field(run('Rent'))}{run(' is ')}{changed}{run(' a month.')}"
    block = field(f"<w:p>{run('A field')}</w:p>")
    titled = f"{styled('Title')}{run('The')}<w:r><w:br/></w:r>{run('end')}"
    content = word_of(f"<w:p>{line}</w:p><w:p>{BOX}</w:p>{block}<w:p>{titled}</w:p>")
    first, last = await read(content, "docx", LIMITS)
    assert first.text == "Acme Ltd\nRent is 950 a month.\nA box\nA field"
    assert last == Section("The end\nSigned. [By whom?]", "The end")


async def test_an_opendocument_text_says_what_people_see_in_it() -> None:
    xmlns = "".join(f' xmlns:{each}="urn:{each}"' for each in ("text", "table", "o"))
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    note = "<text:note><text:s/><text:p>By whom?</text:p></text:note>"
    xml = (
        "<text:tracked-changes><text:p>800</text:p></text:tracked-changes><text:p>Acme Ltd</text:p>"
        "<text:h>Wha<text:span>les</text:span></text:h>"
        f"<text:p>Rent:<text:tab/><text:span>950</text:span> a month{note}.</text:p>"
        f"<table:table><table:table-row>{cell('Blue')}{cell('190')}</table:table-row></table:table>"
    )
    xml = f"<o:styles>A date. </o:styles><o:body>{xml}<o:desc>A logo</o:desc></o:body>"
    file = {"META-INF/manifest.xml": "", "content.xml": f"<o:document{xmlns}>{xml}</o:document>"}
    assert await read(zipped(file), "docx", LIMITS) == [
        Section("Acme Ltd"),
        Section("Whales\nRent: 950 a month [By whom?].\nBlue | 190", "Whales"),
    ]
    secret = zipped(file | {"META-INF/manifest.xml": "<m:encryption-data>"})
    assert await reason(secret, "docx", LIMITS) == "encrypted"


async def test_a_heading_of_a_word_file_may_have_a_style_of_its_author_and_a_text_box() -> None:
    own = f"<w:p>{styled('Mine')}{run('The ')}{BOX}{run('sea')}</w:p><w:p>{run('Big')}</w:p>"
    style = "<w:style w:styleId='{}'><w:name w:val='{}'/><w:basedOn w:val='{}'/></w:style>".format
    first, second = style("Mine", "Chapter", "Other"), style("Other", "Mine, too", "H1")
    loop = style("H1", "heading 1", "Base") + style("Base", "My base", "H1")
    styles = f"<w:styles xmlns:w='{WORD}'>{first}{second}{loop}</w:styles>"
    _, chapter = await read(zipped({"word/styles.xml": styles}, word_of(own)), "docx", LIMITS)
    assert chapter == Section("The sea\nA box\nBig\nSigned. [By whom?]", "The sea")


async def test_merged_cells_of_a_word_file_are_found_in_fields_to_fill_in() -> None:
    cell = "<w:tc><w:tcPr>{}</w:tcPr><w:p>{}</w:p></w:tc>".format
    above, below = cell("<w:vMerge w:val='restart'/>", run("Mon")), cell("<w:vMerge/>", "")
    first, second = f"{above}{cell('', run('9h'))}", f"{field(below)}{cell('', run('10h'))}"
    table = f"<w:tbl><w:tr>{first}</w:tr>{field(f'<w:tr>{second}</w:tr>')}</w:tbl>"
    (section,) = await read(word_of(table), "docx", LIMITS)
    assert section.text.splitlines()[1:3] == ["Mon | 9h", "Mon | 10h"]


FORMULA = f"<w:p><m:oMath xmlns:m='{MATH}'><m:r><m:t>x=1</m:t></m:r></m:oMath></w:p>"


@pytest.mark.parametrize(
    ("format_", "content"),
    [("docx", word_of(FORMULA)), ("pptx", slides()), ("xlsx", sheets())],
    ids=["docx", "pptx", "xlsx"],
)
async def test_a_file_that_office_saved_as_strict_is_read(format_: Format, content: bytes) -> None:
    found = await read(content, format_, LIMITS)
    assert await read(strict(content), format_, LIMITS) == found
    assert format_ != "docx" or "x=1" in found[0].text


def test_white_space_between_elements_of_xml_is_no_text() -> None:
    add_xml(found := Sections(99), xml_of(b"<p><t>a</t> <t>b</t></p>"), {"p": "p", "t": "span"})
    assert found.found() == [("", "ab")]


async def test_a_cell_over_many_rows_of_a_word_file_stands_in_each_of_them() -> None:
    cell = "<w:tc>{}<w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>".format
    merged, day = "<w:tcPr><w:vMerge/></w:tcPr>", "Mon</w:t><w:noBreakHyphen/><w:t>day"
    first = cell(merged.replace("/><", " w:val='restart'/><"), day)
    rows = [
        f"<w:tr>{cell(merged, '') if at else first}{cell('', at)}</w:tr>" for at in range(1_200)
    ]
    (section,) = await read(word_of(f"<w:tbl>{''.join(rows)}</w:tbl>"), "docx", LIMITS)
    assert section.text.splitlines()[1:1_201] == [f"Mon-day | {at}" for at in range(1_200)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Of Ann, Ben\n\nDay;Sum\n1.2.;-1,50\n2.2.;3,5", "Day | Sum\n1.2. | -1,50\n2.2. | 3,5"),
        (
            "Name;Sum, EUR;Place, Land\nAnn;1,5;Graz",
            "Name | Sum, EUR | Place, Land\nAnn | 1,5 | Graz",
        ),
        ("a,b\tc\n1\t2", "a,b | c\n1 | 2"),
        ("figs; pears,3\nplums; nuts,4", "figs; pears | 3\nplums; nuts | 4"),
        ("1,5; 2\n2,5; 3", "1,5 | 2\n2,5 | 3"),
        (f"{'a' * 200_000},b", f"{'a' * 200_000} | b"),  # a long cell is no damage
    ],
    ids=["a bank", "commas in the head", "tabs", "lists in cells", "blanks", "a long cell"],
)
async def test_the_rows_of_a_csv_tell_its_delimiter(content: str, expected: str) -> None:
    (section,) = await read(content.encode(), "csv", LIMITS)
    assert section.text.removeprefix("Of Ann, Ben\n") == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
async def test_csv_is_read_with_its_own_delimiter_and_quotes(encoding: str) -> None:
    content = 'Tier;Größe\n"Wal; blau";"30\nm"\n;;\n'.encode(encoding)
    assert await read(content, "csv", LIMITS) == [Section("Tier | Größe\nWal; blau | 30 m")]


async def test_html_is_read_without_scripts_and_with_rows_of_tables_as_lines() -> None:
    page = (
        "<title>Sea</title><script>no</script><p>Big&nbsp;<b>fish</b><!-- no -->!<h2>Wha<i>les</i>"
        "</h2>They <br>sing.<table><tr><td><p>Blue</p><p>whale</p><td>190</table>End"
    )
    expected = [
        Section("Big fish!", "Sea"),
        Section("Whales\nThey\nsing.\nBlue whale | 190\nEnd", "Whales"),
    ]
    assert await read(page.encode(), "html", LIMITS) == expected


async def test_code_in_html_keeps_its_lines() -> None:
    page = b"<p>Code:<pre>\nfor x in y:\n  <b>print</b>(x)\n</pre>End"
    assert await read(page, "html", LIMITS) == [Section("Code:\nfor x in y:\n  print(x)\nEnd")]


async def test_html_in_a_declared_legacy_encoding_is_read() -> None:
    page = '<meta charset="windows-1251"><p>Привет'.encode("cp1251")
    assert await read(page, "html", LIMITS) == [Section("Привет")]


async def test_chapters_of_a_book_are_read_in_the_order_of_its_spine() -> None:
    doctype = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://127.0.0.1:9/x.dtd">'
    content = book(
        "<html><body><p>Grüße</p></body></html>",
        f"<?xml version='1.0'?>{doctype}<html><body><h1>Two</h1><p>sea&nbsp;&amp; sky</p></body>",
    )
    assert await read(content, "epub", LIMITS) == [
        Section("Grüße", "chapter 1"),
        Section("Two\nsea & sky", "Two"),
    ]


async def test_an_encrypted_book_and_an_office_file_with_a_password_are_refused() -> None:
    rights = {"META-INF/encryption.xml": '<CipherReference URI="book/text/0 c.xhtml"/>'}
    package = b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le")
    assert await reason(book("<p>secret", **rights), "epub", LIMITS) == "encrypted"
    assert await reason(package, "docx", LIMITS) == "encrypted"


@pytest.mark.parametrize(
    ("content", "format_"),
    [
        (word(), "xlsx"),
        (sheets(), "pptx"),
        (slides(), "epub"),
        (b"%PDF-1.7", "docx"),
        (word()[:-400], "docx"),
        (book("a")[:300], "epub"),
        (zipped({"a": "b"}), "xlsx"),
    ],
    ids=["docx", "xlsx", "pptx", "pdf", "cut docx", "cut epub", "any zip"],
)
async def test_a_cut_file_or_another_format_is_refused(content: bytes, format_: Format) -> None:
    assert await reason(content, format_, LIMITS) == "damaged"


async def test_a_decompression_bomb_is_refused_before_a_library_reads_it() -> None:
    flat = zipped({"word/media/image1.bmp": bytes(100 * MB)}, word())
    lying = flat.replace((100 * MB).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert await reason(flat, "docx", LIMITS) == "too_long"
    assert await reason(lying, "docx", LIMITS) == "damaged"
    assert await reason(zipped({str(at): b"" for at in range(5_001)}), "epub") == "too_long"


async def test_a_zip_inside_a_file_is_not_opened() -> None:
    inner = zipped({"bomb": bytes(30 * MB)})
    assert len(await read(zipped({"word/embeddings/a.zip": inner}, word()), "docx", LIMITS)) == 2


async def test_a_sheet_that_announces_all_cells_is_read_as_far_as_it_has_any() -> None:
    one = SHEET_XML.format('<row r="2"><c r="B2"><v>0.30000000000000004</v></c></row>')
    content = zipped({SHEET: one}, sheets())
    assert await read(content, "xlsx", LIMITS) == [Section("| 0.3", "sheet Animals")]


async def test_a_formula_whose_result_is_an_empty_text_says_nothing() -> None:
    """Forms that people fill in have many of them."""
    cell = '<row r="{0}"><c r="A{0}" s="0" t="str"><f>IF(B{0}="","",1)</f><v></v></c></row>'.format
    sheet = SHEET_XML.format(f'{cell(1)}<row r="2"><c r="A2"><f>NOW()</f><v></v></c></row>')
    [found] = await read(zipped({SHEET: sheet}, sheets()), "xlsx", LIMITS)
    assert found.text == "=NOW()"


async def test_a_cell_over_several_rows_is_read_in_each_of_them() -> None:
    """A long text, such as a note beside many rows, is read once."""
    line = '<row r="{0}"><c r="B{0}"><v>{0}</v></c><c r="C{0}"/></row>'.format
    note = f'<c r="C1" t="inlineStr"><is><t>{"n" * 41}</t></is></c>'
    first = f'<row r="1"><c r="A1"><v>7</v></c><c r="B1"><v>1</v></c>{note}</row>'
    merged = '<mergeCells><mergeCell ref="A1:A2"/><mergeCell ref="C1:C2"/></mergeCells></worksheet>'
    sheet = SHEET_XML.format(first + line(2) + line(3)).replace("</worksheet>", merged)
    [found] = await read(zipped({SHEET: sheet}, sheets()), "xlsx", LIMITS)
    assert found.text == f"7 | 1 | {'n' * 41}\n7 | 2\n| 3"


async def test_a_short_cell_over_very_many_rows_does_not_make_a_sheet_too_long() -> None:
    label = f'<row r="1"><c r="A1" t="inlineStr"><is><t>{"n" * 40}</t></is></c></row>'
    line = '<row r="{0}"><c r="B{0}"><v>{0}</v></c></row>'.format
    merged = '<mergeCells><mergeCell ref="A1:A12500"/></mergeCells></worksheet>'
    rows = f"{label}{''.join(map(line, range(2, 12_501)))}"
    sheet = SHEET_XML.format(rows).replace("</worksheet>", merged)
    [found] = await read(zipped({SHEET: sheet}, sheets()), "xlsx", LIMITS)
    assert found.text.splitlines()[1] == f"{'n' * 40} | 2"
    assert found.text.endswith("\n| 12500")


async def test_very_many_formulas_do_not_make_a_sheet_too_long() -> None:
    line = '<row r="{0}"><c r="A{0}"><v>{0}</v></c><c r="B{0}"><f>{1}*A{0}</f></c></row>'.format
    rows = "".join(line(number, "A1" * 20) for number in range(1, 12_501))
    [found] = await read(zipped({SHEET: SHEET_XML.format(rows)}, sheets()), "xlsx", LIMITS)
    assert found.text.endswith("\n12500")


async def test_a_spreadsheet_may_lack_its_styles_and_its_links() -> None:
    with zipfile.ZipFile(io.BytesIO(sheets())) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    del parts["xl/styles.xml"], parts["_rels/.rels"]
    found = await read(zipped(parts), "xlsx", LIMITS)
    assert "Blue whale | 190" in found[0].text


@pytest.mark.parametrize("rows", [1_048_576, 50])
async def test_gaps_between_cells_count_as_cells(rows: int) -> None:
    cells = [f'<row r="{rows}"><c r="A{rows}"><v>7</v></c></row>']
    if rows == 50:
        cells = [f'<row r="{at}"><c r="XFD{at}"><v>7</v></c></row>' for at in range(1, 51)]
    content = zipped({SHEET: SHEET_XML.format("".join(cells))}, sheets())
    assert await reason(content, "xlsx", LIMITS) == "too_long"


async def test_entities_that_a_file_declares_are_never_expanded() -> None:
    body = "<html><body><p>safe * end</p></body></html>"
    sheet = entities(SHEET_XML.format('<row r="1"><c r="A1" t="str"><v>*</v></c></row>'))
    outside = '<!DOCTYPE w [<!ENTITY e SYSTEM "file:///etc/passwd">]><w>&e;</w>'
    (chapter,) = await read(book(entities(body)), "epub", LIMITS)
    assert "lol" not in chapter.text
    assert "safe" in chapter.text
    package = {"META-INF/container.xml": entities("<container>*</container>")}
    assert await reason(zipped(package), "epub", LIMITS) == "damaged"
    assert await reason(zipped({SHEET: sheet}, sheets()), "xlsx", LIMITS) == "damaged"
    utf_16 = zipped({"word/document.xml": outside.encode("utf-16")}, word())
    assert await reason(utf_16, "docx", LIMITS) == "damaged"


@pytest.mark.parametrize(
    ("content", "format_"),
    [(word(), "docx"), (b"a,b\n" * 9, "csv"), (b"<p>" + b"a" * 40, "html")],
    ids=["docx", "csv", "html"],
)
async def test_too_much_text_is_refused_in_every_format(content: bytes, format_: Format) -> None:
    assert await reason(content, format_, Limits(chars=20)) == "too_long"


@pytest.mark.parametrize("before", [b"<!--%b-->", b'<img alt="%b">', b"<script>%b</script>"])
async def test_a_page_may_hold_ten_megabytes_that_are_no_text(before: bytes) -> None:
    content = before % (b"a" * 11_000_000) + b"<p>the end"
    assert await read(content, "html", Limits()) == [Section("the end")]
    assert await reason(b"<p>" + b"a" * 11_000_000, "html", Limits()) == "too_long"


async def test_many_short_rows_are_refused_by_their_parser() -> None:
    """Each row costs time when the text is cut into passages."""
    assert await reason(b"a\n" * 249_000, "csv", Limits()) == "too_long"


async def test_a_word_file_without_styles_and_with_a_link_to_no_part_is_read() -> None:
    """Some programs write such a link; the library that we used refused the file."""
    link = "<Relationships><Relationship Id='r' Type='image' Target='NULL'/></Relationships>"
    bare = zipped({"word/_rels/document.xml.rels": link, "word/styles.xml": "<styles/>"}, word())
    (section,) = await read(bare, "docx", LIMITS)
    assert section.text == "Before.\nWhales\nAnimal | Tonnes\nBlue whale | 190\nAfter."
