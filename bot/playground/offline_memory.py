"""The offline model of internal calls: it quotes what people said and understands nothing.

With it the playground shows without a key how a running state, facts and synopses form.

A wish to be reminded is read in the words of the example of `/reminders` in each language: "Remind
me tomorrow at 9 to ...", "on Monday at 18:30"; in English also "in 10 minutes", "every day at 8",
and a task: "every day at 8 tell me ...".
"""

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import orjson

from memory.text.shape import AnswerShape

_QUESTION = re.compile(r"[?？؟]\s*$")
_ASKED = re.compile(r"^## (\w+)$", re.MULTILINE)
_RANGE = re.compile(r"^## (\w+): learns from messages (\d+) to (\d+)$", re.MULTILINE)
_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class Said:
    """A message in the input of an internal call."""

    number: int
    by_person: bool  # and not by the assistant
    text: str
    is_untrusted: bool


class OfflineInternalModel:
    """Answers internal calls with sentences from the input."""

    async def fill(
        self,
        instructions: str,
        content: str,
        shape: AnswerShape,  # noqa: ARG002 - the port's
    ) -> Mapping[str, object]:
        """Return the parts that the instructions ask for; the others are None."""
        asked = set(_ASKED.findall(instructions))
        parts: dict[str, object] = {
            "running_state": _state(said_in(content, "running_state")),
            "facts": {"facts": _facts(said_in(content, "facts"))},
            "synopses": _synopsis(said_in(content, "synopses")),
        }
        return {name: part if name in asked else None for name, part in parts.items()}

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:  # noqa: ARG002 - the port's
        """Return the memories of the input with their dates, one a line."""
        lines = (line for line in content.splitlines() if line.startswith('{"on":'))
        return "\n".join("{on}: {memory}".format_map(orjson.loads(line)) for line in lines)


def said_in(content: str, part: str) -> list[Said]:
    """Return the messages of an input that one part learns from, oldest first."""
    ranges = {name: (int(first), int(last)) for name, first, last in _RANGE.findall(content)}
    first, last = ranges.get(part, (0, sys.maxsize))
    lines = (orjson.loads(line) for line in content.splitlines() if line.startswith('{"n":'))
    return [
        Said(line["n"], line["who"] != "assistant", line["said"], line.get("untrusted", False))
        for line in lines
        if first <= line["n"] <= last
    ]


def _facts(said: list[Said]) -> list[dict[str, object]]:
    return [
        fact_part(each.text, each.number, changes=bool(SAID["changes"].search(each.text)))
        for each in said
        if each.by_person
        and not each.is_untrusted
        and SAID["about_me"].search(each.text)
        and not _QUESTION.search(each.text)
        and not begins_with_wish(each.text)
        and len(each.text) <= _MAX_CHARS
    ]


def fact_part(text: str, message: int, *, changes: bool) -> dict[str, object]:
    """Return a fact as the model of internal calls writes it."""
    lasts = "changes" if changes else "always"
    return {"text": text, "message": message, "replaces": None, "repeats": None, "lasts": lasts}


def _state(said: list[Said]) -> dict[str, object]:
    by_people = [each.text[:_MAX_CHARS] for each in said if each.by_person]
    questions = [text for text in by_people if _QUESTION.search(text)]
    return {
        "first_name": "unknown",
        "last_name": "unknown",
        "discussion_summary": f"Last said: {by_people[-1] if by_people else 'unknown'}",
        "key_entities": [],
        "open_problems": questions[-3:],
        "current_goals": [],
    }


def _synopsis(said: list[Said]) -> dict[str, object]:
    by_people = [each.text[:_MAX_CHARS] for each in said if each.by_person]
    answers = [each.text[:_MAX_CHARS] for each in said if not each.by_person]
    return synopsis_part(
        by_people[0] if by_people else None,
        f"Answered {len(answers)} times",
        answers[-1] if answers else None,
    )


def synopsis_part(
    wish: str | None = None, actions: str | None = None, result: str | None = None
) -> dict[str, object]:
    """Return a synopsis as the model of internal calls writes it; None says nothing."""
    unknown = dict.fromkeys(("behaviour", "emotions", "preferences", "reasoning"))
    return {"likely_request": wish, "actions": actions, "result": result, **unknown}


_UNITS = {"minute": 1, "hour": 60, "day": 1440}
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_WISH = re.compile(
    r"\A(?:⏰ |(?:please[, ]+)?remind me\b|every \w+ at \d|(?:bitte )?erinner[en]? mich\b"
    r"|напомни(?:те)?\b|recuérda(?:me|lo)\b|(?:me )?lembr[ea]\b|ingatkan\b|rappelle[- ]moi\b"
    r"|ricordami\b|нагадай(?:те)?\b)|یادم بینداز|\bhatırlat\b",
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
_WISHES = tomllib.loads(
    Path(__file__).with_name("offline_reminders.toml").read_text("utf-8")
).values()
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
