"""The table of `check` as text."""

from collections import Counter
from collections.abc import Sequence

from bot.probe import Row

TELEGRAM = "Telegram"
"""The row of a token that Telegram knows."""

_MARK_WIDTH = 7
_STEPS = 3
_BY_URGENCY = ("fail", "warn", "ok", "unknown")


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


def next_steps(rows: Sequence[Row]) -> str:
    """Return the three most useful things to do: what failed, what has a price, what is offered."""
    ordered = [row for verdict in _BY_URGENCY for row in rows if row.verdict == verdict]
    steps = [f"{row.what}: {row.advice}" for row in ordered if row.advice]
    if is_passed(rows) and any(row.what == TELEGRAM for row in rows):
        steps.insert(0, "start the bot, and write /start to it")
    lines = [f"{number}. {step}" for number, step in enumerate(steps[:_STEPS], 1)]
    return "\n".join(["Next:", *lines]) if lines else "Nothing is left to do."


def _summary(rows: Sequence[Row]) -> str:
    count = Counter(row.verdict for row in rows)
    parts = [f"{count['ok']} ok"]
    parts += [f"{count[verdict]} {verdict}" for verdict in ("warn", "unknown") if count[verdict]]
    parts.append(f"{count['fail']} failed")
    return ", ".join(parts)
