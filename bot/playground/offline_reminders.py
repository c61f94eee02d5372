"""Reads a wish to be reminded, in English: "Remind me in 10 minutes to ..." and a few others."""

import re

_UNITS = {"minute": 1, "hour": 60, "day": 1440}
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_ONCE = re.compile(
    r"remind me in (\d{1,4}) (minute|hour|day)s? (?:to |of |about )?(.{1,300})", re.IGNORECASE
)
_AGAIN = re.compile(
    rf"remind me every (day|{'|'.join(_DAYS)}) at (\d{{1,2}})(?::(\d\d))? "
    r"(?:to |of |about )?(.{1,300})",
    re.IGNORECASE,
)


def reminder_in(text: str) -> dict[str, str | int]:
    """Return the arguments of `set_reminder`, none if the text is no such wish."""
    text = text.strip().rstrip(".!")
    if once := _ONCE.fullmatch(text):
        count, unit, what = once.groups()
        return {"text": what, "in_minutes": int(count) * _UNITS[unit.lower()]}
    if again := _AGAIN.fullmatch(text):
        day, hour, minute, what = again.groups()
        weekday = "*" if day.lower() == "day" else str(_DAYS.index(day.lower()))
        return {"text": what, "cron": f"{int(minute or 0)} {int(hour)} * * {weekday}"}
    return {}
