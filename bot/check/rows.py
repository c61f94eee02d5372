"""One row of the table, and the table as text; plain enough for a platform's log.

An operator may show a row to anyone: it holds no secret, no error's own text and no person's text.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

# `unknown`: the service does not tell, and that is no reason to stop.
Verdict: TypeAlias = Literal["ok", "warn", "fail", "unknown"]

_MARK_WIDTH = 7


@dataclass(frozen=True, slots=True)
class Row:
    """What was tested, the verdict, what was seen, and what to do about it ("" if nothing)."""

    what: str
    verdict: Verdict
    seen: str
    advice: str = ""


Rows: TypeAlias = AsyncGenerator[Row, None]
"""What one group of checks finds; each row comes as soon as it is known."""


def is_passed(rows: Sequence[Row]) -> bool:
    """Whether nothing failed."""
    return all(row.verdict != "fail" for row in rows)


def table(rows: Sequence[Row]) -> str:
    """Return a line for each row, its advice on the next line, and a summary at the end."""
    width = max((len(row.what) for row in rows), default=0)
    lines = []
    for row in rows:
        mark = "FAIL" if row.verdict == "fail" else row.verdict
        lines.append(f"{mark:<{_MARK_WIDTH}}  {row.what:<{width}}  {row.seen}")
        if row.advice:
            lines.append(f"{'':<{_MARK_WIDTH}}  {'':<{width}}  -> {row.advice}")
    return "\n".join([*lines, "", _summary(rows)])


def _summary(rows: Sequence[Row]) -> str:
    count = Counter(row.verdict for row in rows)
    parts = [f"{count['ok']} ok"]
    parts += [f"{count[verdict]} {verdict}" for verdict in ("warn", "unknown") if count[verdict]]
    parts.append(f"{count['fail']} failed")
    return ", ".join(parts)
