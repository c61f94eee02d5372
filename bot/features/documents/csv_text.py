"""Reads a CSV file in UTF-8, in a process of its own: `csv_text.py CHARACTERS MB SECONDS`.

A row becomes a line. The delimiter is the first one that gives two neighboring rows as many cells:
a bank writes lines about an account above its table. A delimiter that occurs only as in prose
or numbers is tried last.
"""

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice, pairwise

from bot.parsing.answers import Sections, answer_sections

_DELIMITERS = ";\t|,"  # a comma comes last, because it also stands in numbers and in texts
_NOT_IN_TEXT = re.compile(r";(?! )|(?<!\d),(?! )|,(?![ \d])")
_MAX_ROWS = 100  # rows that are looked at for the delimiter


def _add(content: bytes, sections: Sections, _: int) -> None:
    text = content.decode()
    csv.field_size_limit(len(content))  # by default a longer field than 131,072 is an error
    delimiting = {"\t", "|", *_NOT_IN_TEXT.findall(text)}

    def rank(delimiter: str) -> tuple[int, bool]:
        return _first_table_row(_rows(text, delimiter)), delimiter not in delimiting

    for row in _rows(text, min(_DELIMITERS, key=rank)):
        sections.add_row(row)


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    return filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


def _first_table_row(rows: Iterator[list[str]]) -> int:
    """Return where the first two rows stand that are split alike; a high number if none are."""
    widths = [len(row) for row in islice(rows, _MAX_ROWS)]
    alike = (at for at, (one, next_) in enumerate(pairwise(widths)) if one == next_ > 1)
    return next(alike, _MAX_ROWS - max(widths, default=0))


if __name__ == "__main__":
    answer_sections(_add)
