"""Reads the cells of a spreadsheet, in a process of its own: `xlsx_text.py CHARACTERS MB SECONDS`.

Each sheet is a section, and each row with text a line. A formula is read as its last result.
"""

import io
import sys
from datetime import datetime, time

sys.modules.setdefault("numpy", None)  # type: ignore[arg-type] # openpyxl can do without it
from openpyxl import load_workbook  # noqa: E402

from bot.parsing.answers import NotRead, Sections, answer_sections, open_zip  # noqa: E402

_MAX_CELLS = 500_000  # read from all sheets, empty ones included: openpyxl fills gaps between cells


def _add(content: bytes, sections: Sections, memory_mb: int) -> None:
    open_zip(content, memory_mb)
    left = _MAX_CELLS
    book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
    for sheet in book.worksheets:
        sections.begin(f"sheet {sheet.title}")
        sheet.reset_dimensions()  # what a sheet says about its size counts for nothing
        for row in sheet.iter_rows(values_only=True):
            left -= len(row) + 1
            if left < 0:
                raise NotRead("too_long")
            sections.add_row(_shown(value) for value in row)


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    return str(value)


if __name__ == "__main__":
    answer_sections(_add)
