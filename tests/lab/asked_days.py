"""Measures recall@10 of questions that name a date, with the date as in a talk: "last month".

    python -m tests.lab.asked_days DIR [DIR ...]

A question for a day is asked the day after ("yesterday"), a week ("last week") and two weeks later
("two weeks ago"); a question for a month in the next month ("last month") and three months after
("last May"). The vector is that of the original question (for the format see `conversations`). The
output is one JSON line for each folder, with the originals, and without the day of asking.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

from memory.search.weights import DEFAULTS
from tests.lab.conversations import read_folder
from tests.lab.recall import percent, share
from tests.lab.shown import index_of

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DATE = re.compile(
    r"(?:on |in |of |by |during )?(?:the )?(?:(\d{1,2})(?:st|nd|rd|th)?(?: of)? )?"
    rf"({'|'.join(MONTHS)})(?: (\d{{1,2}})(?:st|nd|rd|th)?\b)?,? (20\d\d)"
)


def rewritten(text: str) -> Iterator[tuple[str, date]]:
    """Yield a question with its date by its distance, and the day of asking; none without date."""
    found = DATE.search(text)
    if found is None:
        return
    month, year = MONTHS.index(found[2]) + 1, int(found[4])
    named = int(found[1] or found[3] or 0)
    if named:
        day = date(year, month, named)
        asked = [("yesterday", 1), ("last week", 7), ("two weeks ago", 14)]
    else:
        day = date(year + month // 12, month % 12 + 1, 15)
        asked = [("last month", 0), (f"last {found[2]}", 100)]
    for phrase, days in asked:
        yield text[: found.start()] + phrase + text[found.end() :], day + timedelta(days)


def main(names: Sequence[str]) -> None:
    """Print the figures of each folder."""
    for name in names:
        shares: dict[str, list[float]] = defaultdict(list)
        for labelled in read_folder(Path(name)):
            index = index_of(labelled, DEFAULTS)
            for question, row in zip(labelled.questions, labelled.question_rows, strict=True):
                for text, asked_on in rewritten(question.text):
                    for kind, hits in (
                        ("original", index.search(question.text, row, 10)),
                        ("without the day of asking", index.search(text, row, 10)),
                        ("shipped", index.search(text, row, 10, asked_on=asked_on)),
                    ):
                        shares[kind].append(share(labelled, question, hits))
        figures = {kind: percent(each) for kind, each in shares.items()}
        asked = len(shares["shipped"])
        sys.stdout.write(json.dumps({"dir": name, "questions": asked, **figures}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
