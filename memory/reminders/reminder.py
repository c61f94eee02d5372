"""`Reminder`: one reminder as a value, and the form in which it is stored."""

from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Self

import orjson

from memory.reminders.schedule import check_due, due_at, has_offset, next_due

MAX_CHARS = 500
"""Characters of a reminder's text."""

_ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class Reminder:
    """What to tell one person, when, and to which message of theirs it replies.

    `due` is in Unix seconds; 0 while the person has not agreed or has no time zone yet. A reminder
    is at a local time (`at`) or follows a `rule` in `zone`, which is "" while it is not known.
    `sends` counts how often sending it was begun since it became due.
    """

    person: int
    text: str
    at: str = ""
    rule: str = ""
    zone: str = ""
    due: float = 0
    chat_id: int = 0
    topic_id: int = 0
    message_id: int = 0
    language: str = "en"
    id: str = field(default_factory=lambda: token_hex(_ID_BYTES))
    sends: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the person will be reminded; otherwise a button has to be pressed first."""
        return self.due > 0

    @property
    def needs_zone(self) -> bool:
        """Whether it cannot be due before the zone is known."""
        return not self.zone and bool(self.rule or not has_offset(self.at))

    def opened(self, due: float) -> Self:
        """Return the reminder as one that is due then."""
        return replace(self, due=due)

    def is_like(self, other: "Reminder") -> bool:
        """Return whether both say the same at the same time."""
        return (self.text, self.due, self.at, self.rule) == (
            *(other.text, other.due, other.at, other.rule),
        )

    def first_due(self, zone: str, now: float) -> float:
        """Return when it is due first in a zone; raise `UnusableTime`."""
        due = self.planned(zone, now)
        check_due(due, now)
        return due

    def planned(self, zone: str, now: float) -> float:
        """Return the same, even if the time has passed."""
        return next_due(self.rule, zone, now) if self.rule else due_at(self.at, zone)

    def due_after(self, now: float) -> float:
        """Return when it is due next, 0 for never again: what was missed is not made up for."""
        return next_due(self.rule, self.zone, max(now, self.due)) if self.rule else 0

    @property
    def body(self) -> str:
        """The stored form of what scripts do not read."""
        when = (self.text, self.at, self.rule, self.zone)
        where = (self.chat_id, self.topic_id, self.message_id, self.language)
        return orjson.dumps([*when, *where]).decode()

    @classmethod
    def of_stored(cls, id_: str, stored: bytes) -> Self:
        """Read the value of a field, which `memory/store/lua/shared/scope.lua` describes."""
        person, _, due, sends, _, _, body = stored.split(b"|", 6)
        text, at, rule, zone, chat_id, topic_id, message_id, language = orjson.loads(body)
        return cls(
            person=int(person),
            text=text,
            at=at,
            rule=rule,
            zone=zone,
            due=int(due) / 1000,
            chat_id=chat_id,
            topic_id=topic_id,
            message_id=message_id,
            language=language,
            id=id_,
            sends=int(sends),
        )


@dataclass(slots=True)
class ReminderChanges:
    """What the tools of one answer change: reminders that are set, and those that are cancelled."""

    added: list[Reminder] = field(default_factory=list)
    cancelled: list[Reminder] = field(default_factory=list)

    def encode(self) -> str:
        """Return the stored form, "" for no changes."""
        added = [(each.id, each.person, round(each.due * 1000), each.body) for each in self.added]
        cancelled = [each.id for each in self.cancelled]
        return orjson.dumps([added, cancelled]).decode() if added or cancelled else ""
