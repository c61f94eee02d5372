"""A made-up year of talk: Maya, who does not exist, and what she told the bot.

`talk.txt` holds the messages with their facts and synopses, `allotment.md` is her document.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import orjson

FOLDER = Path(__file__).parent
DOCUMENT = FOLDER / "allotment.md"
_LAST_DAY = (11, 22)
"""Month and day of the last message, so that the seasons in the talk are those of its dates."""


@dataclass(frozen=True, slots=True)
class Line:
    """One message of the year; `sent_at` is in Unix seconds."""

    role: Literal["user", "assistant"]
    text: str
    sent_at: float


@dataclass(slots=True)
class Year:
    """All that is in the file.

    `sessions` are lists of messages, oldest first. `facts` are listed by the message that they rest
    on, `synopses` (wish, what was done, result) by the first message of their session. `state` is
    the running state at the end.
    """

    sessions: list[list[Line]] = field(default_factory=list)
    facts: dict[str, list[str]] = field(default_factory=dict)
    synopses: dict[str, list[str]] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    state: dict[str, object] = field(default_factory=dict)

    @property
    def lines(self) -> list[Line]:
        """All messages, oldest first."""
        return [line for session in self.sessions for line in session]


def read_year(now: datetime) -> Year:
    """Return the year of talk that ended on the last 22 November before `now` (with a zone)."""
    year = Year()
    end = now.replace(
        month=_LAST_DAY[0], day=_LAST_DAY[1], hour=0, minute=0, second=0, microsecond=0
    )
    end = end if end <= now else end.replace(year=end.year - 1)
    sent_at = end
    for line in (FOLDER / "talk.txt").read_text("utf-8").splitlines():
        mark, _, text = line.partition(" ")
        match mark:
            case "=":
                days, _, clock = text.partition(" ")
                hour, minute = map(int, clock.split(":"))
                sent_at = (end - timedelta(int(days))).replace(hour=hour, minute=minute)
                year.sessions.append([])
            case ">" | "<":
                role: Literal["user", "assistant"] = "user" if mark == ">" else "assistant"
                year.sessions[-1].append(Line(role, text, sent_at.astimezone(UTC).timestamp()))
                sent_at += timedelta(seconds=40 if mark == ">" else 75)
            case "!":
                said = next(each for each in reversed(year.sessions[-1]) if each.role == "user")
                year.facts.setdefault(said.text, []).append(text)
            case "~":
                year.synopses[year.sessions[-1][0].text] = text.split(" | ")
            case "?":
                year.questions.append(text)
            case "*":
                year.state = orjson.loads(text)
    return year
