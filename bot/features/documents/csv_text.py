"""Reads a CSV file in UTF-8, in a process of its own: `csv_text.py CHARACTERS MB SECONDS`.

A row becomes a line.
"""

import csv
import io

from bot.parsing.answers import Sections, answer_sections

_DELIMITERS = ",;\t|"


def _add(content: bytes, sections: Sections, _: int) -> None:
    text = content.decode()
    csv.field_size_limit(len(content))  # by default a longer field than 131,072 is an error
    first = text.lstrip().partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
        sections.add_row(row)


if __name__ == "__main__":
    answer_sections(_add)
