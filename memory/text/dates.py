"""Dates in the prompt: when something was said, and how long ago. English, as all prompt text."""

import re
from calendar import monthrange
from datetime import date, datetime, tzinfo

# `calendar.month_name` would depend on the locale of the process.
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_ISO = re.compile(r"[12]\d{3}(?:-\d\d){0,2}")
_DAYS_PER_MONTH = 365.2425 / 12


def dated(sent_at: float, now: float, zone: tzinfo) -> str:
    """Return when `sent_at` was, seen from `now` (both in Unix seconds), in the time of `zone`.

    "today, 14:05", "yesterday, 14:05", then "12 March 2025, 8 months ago". A later day (because a
    clock was wrong) is given by its date alone.
    """
    said = datetime.fromtimestamp(sent_at, zone)
    days = (datetime.fromtimestamp(now, zone).date() - said.date()).days
    if days in (0, 1):
        return f"{('today', 'yesterday')[days]}, {said:%H:%M}"
    if days < 0:
        return calendar_day(said.date())
    return f"{calendar_day(said.date())}, {_ago(days)}"


def days_of(iso: str) -> tuple[date, date] | None:
    """Return the first and the last day of "2026-03-12", "2026-03" or "2026"; None for others."""
    if not _ISO.fullmatch(iso):
        return None
    year, month, day = (*map(int, iso.split("-")), 0, 0)[:3]
    try:
        first = date(year, month or 1, day or 1)
        if day:
            return first, first
        last_month = month or 12
        return first, date(year, last_month, monthrange(year, last_month)[1])
    except ValueError:
        return None


def written_day(iso: str) -> str:
    """Return an ISO date as in "12 March 2026", "March 2026" or "2026"."""
    year, *rest = iso.split("-")
    names = [_MONTHS[int(rest[0]) - 1]] if rest else []
    return " ".join((*(str(int(day)) for day in rest[1:]), *names, year))


def calendar_day(day: date) -> str:
    """Return a day as in "12 March 2025"."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _ago(days: int) -> str:
    """Return a distance of two days or more, in the largest unit that gives at least two."""
    months = round(days / _DAYS_PER_MONTH)
    if days < 14:
        return f"{days} days ago"
    if months < 2:
        return f"{days // 7} weeks ago"
    if months < 24:
        return f"{months} months ago"
    return f"{months // 12} years ago"
