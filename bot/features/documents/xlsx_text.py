"""Reads the cells of a spreadsheet, in a process of its own: `xlsx_text.py CHARACTERS MB SECONDS`.

Each sheet is a section, and each row with text a line. A short cell that spans several rows is read
in each of them that has a cell there; a formula as its last result, else as it is written.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, time
from html import unescape
from typing import Any

sys.modules.setdefault("numpy", None)  # type: ignore[arg-type] # openpyxl can do without it
from openpyxl import load_workbook  # noqa: E402
from openpyxl.utils import column_index_from_string  # noqa: E402

from bot.parsing.answers import NotRead, Sections, answer_sections  # noqa: E402
from bot.parsing.html_text import opened_office_file  # noqa: E402

_PERCENT = re.compile(r"(?<!\\)%$")  # "\%" is only shown
_MERGED = re.compile(rb"""mergeCell ref=["']([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}(\d{1,7})["']""")
# Without a result, as programs write it that do not calculate; a result may be an empty text.
_FORMULA = re.compile(
    rb"""<c r=["']([A-Z]{1,3}\d{1,7})["'](?![^<>]* t=.str)[^<>]*><f[^<>]*>([^<]{1,400})</f>"""
    rb"""(?:<v ?/>|<v></v>)?</c>"""
)
_LABEL_CHARS = 40  # of a cell that is repeated in each of its rows
_MAX_REPEATED_CHARS = 100_000  # of all these cells
_MAX_FORMULA_CHARS = 100_000  # of all sheets; more of them would leave no room for what is known
_MAX_CELLS = 500_000  # read from all sheets, empty ones included: openpyxl fills gaps between cells


def _add(content: bytes, sections: Sections, memory_mb: int) -> None:
    left, repeated, written = _MAX_CELLS, 0, 0
    file = opened_office_file(content, memory_mb)
    book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    for sheet in book.worksheets:
        sections.begin(f"sheet {sheet.title}")
        sheet.reset_dimensions()  # what a sheet says about its size counts for nothing
        (merged, formulas), spans = _left_out(sheet), dict[int, tuple[int, str]]()
        written += sum(map(len, formulas.values()))
        if written > _MAX_FORMULA_CHARS:
            formulas = {}
        for number, row in enumerate(sheet.iter_rows(), 1):
            left -= len(row) + 1
            if left < 0:
                raise NotRead("too_long")
            texts = [_shown(cell, formulas) for cell in row]
            for at, last in merged.get(number, ()):
                if at < len(texts) and len(texts[at]) <= _LABEL_CHARS:
                    spans[at] = last, texts[at]
            if any(texts):  # else many empty rows would say the same
                for at, (last, text) in spans.items():
                    if number <= last and at < len(texts) and repeated < _MAX_REPEATED_CHARS:
                        texts[at], repeated = text, repeated + len(text)
                sections.add_row(texts)


def _left_out(sheet: Any) -> tuple[dict[int, list[tuple[int, int]]], dict[str, str]]:
    """Return columns and last rows of merged cells by first rows, and formulas without a result."""
    merged = defaultdict[int, list[tuple[int, int]]](list)
    with sheet._get_source() as source:  # noqa: SLF001 - read-only mode leaves them out
        xml = source.read()
    for column, first, last in _MERGED.findall(xml):
        merged[int(first)].append((column_index_from_string(column.decode()) - 1, int(last)))
    return merged, {at.decode(): f"={unescape(f.decode())}" for at, f in _FORMULA.findall(xml)}


def _shown(cell: Any, formulas: Mapping[str, str]) -> str:
    value = cell.value
    if value is None:
        return formulas.get(getattr(cell, "coordinate", ""), "")
    with suppress(IndexError, KeyError):  # a file may lack the format that a cell names
        if cell.data_type == "n" and _PERCENT.search(cell.number_format):
            return f"{100 * value:.15g}%"
    if isinstance(value, float):  # with as many digits as Excel shows
        return str(int(value)) if value.is_integer() else f"{value:.15g}"
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    return str(value)


if __name__ == "__main__":
    answer_sections(_add)
