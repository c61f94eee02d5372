"""Reads a wish to be reminded, in the words of the example of `/reminders` in each language.

"Remind me tomorrow at 9 to ...", "on Monday at 18:30"; in English also "in 10 minutes", "every
day at 8", and a task: "every day at 8 tell me ...".
"""

import re
import tomllib
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

_UNITS = {"minute": 1, "hour": 60, "day": 1440}
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_WISH = re.compile(
    r"\A(?:⏰ |(?:please[, ]+)?remind me\b|every \w+ at \d|(?:bitte )?erinner[en]? mich\b"
    r"|напомни(?:те)?\b|recuérda(?:me|lo)\b)|یادم بینداز",
    re.IGNORECASE,
)
_CLOCK = r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?"
_ONCE = re.compile(
    r"remind me in (\d{1,4}) (minute|hour|day)s? (?:to |of |about )?(.{1,300})", re.IGNORECASE
)
_AGAIN = re.compile(
    rf"(remind me )?every (day|{'|'.join(_DAYS)}) at (\d{{1,2}})(?::(\d\d))? "
    r"(?:to |of |about )?(.{1,300})",
    re.IGNORECASE,
)
_LISTED = tomllib.loads(Path(__file__).with_name("offline_model.toml").read_text("utf-8"))
SAID = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _LISTED.items()}
_WISHES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).values()
_LANGUAGES = tuple(
    (
        days,
        re.compile(
            form.format(day=f"(?P<day>{'|'.join(days)})", clock=_CLOCK, what=r"(?P<what>.{1,300})"),
            re.IGNORECASE,
        ),
    )
    for days, form in ((each["days"].split(), each["form"]) for each in _WISHES)
)


def begins_with_wish(text: str) -> bool:
    """Return whether a text asks to be reminded, also at a time that `reminder_in` cannot read."""
    return _WISH.search(text.strip()) is not None


def reminder_in(text: str) -> dict[str, str | int]:
    """Return the arguments of `set_reminder`, none if the text is no such wish."""
    text = text.strip().rstrip(".!")
    if once := _ONCE.fullmatch(text):
        count, unit, what = once.groups()
        return {"text": what, "in_minutes": int(count) * _UNITS[unit.lower()]}
    if again := _AGAIN.fullmatch(text):
        reminds, day, hour, minute, what = again.groups()
        weekday = "*" if day.lower() == "day" else str(_DAYS.index(day.lower()))
        cron = f"{int(minute or 0)} {int(hour)} * * {weekday}"
        return {"text": what, "cron": cron, **({} if reminds else {"is_task": True})}
    for days, pattern in _LANGUAGES:
        if (found := pattern.fullmatch(text)) and (at := _time(days, found.groupdict())):
            return {"text": found["what"], "at": at}
    return {}


def _time(days: Sequence[str], said: dict[str, str | None]) -> str:
    """Return the next such time by this machine's clock; "" if there is no such hour."""
    now = datetime.now().astimezone()
    hour, minute = int(said["hour"] or 0), int(said["minute"] or 0)
    if half := (said.get("half") or "").lower():
        hour = hour % 12 + 12 * (half == "pm")
    if hour > 23 or minute > 59:
        return ""
    number = days.index((said["day"] or "").lower())
    ahead = number if number < 2 else (number - 2 - now.weekday()) % 7
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0) + timedelta(ahead)
    return f"{at + timedelta(7) if number >= 2 and at <= now else at:%Y-%m-%dT%H:%M}"
