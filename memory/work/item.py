"""`WorkItem`: something that is due for one person, as a value and in its stored form."""

from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Self

import orjson

from memory.work.schedule import check_due, due_at, has_offset, next_due

_ID_BYTES = 4
_MINUTES = 1 << 20
"""The minutes of about two years; with an id they fit into the integers that Redis keeps exact."""
_CLOCKS_DIFFER_MINUTES = 60
BEGUN = 99
"""The requests of a task that is not due again and whose turn has begun."""
_FIRST_KIND = "reminder"
"""Items of the first release have no kind: they are reminders."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Something that is due for one person, once or again and again."""

    person: int
    text: str
    kind: str = _FIRST_KIND  # the `Work` of a feature that knows what is to be done
    at: str = ""  # a local time ...
    rule: str = ""  # ... or a cron rule
    zone: str = ""  # an IANA name; "" while it is not known
    due: float = 0  # Unix seconds; 0 while the person has not agreed or has no time zone yet
    chat_id: int = 0
    topic_id: int = 0
    message_id: int = 0  # the person's message that asked for it
    language: str = "en"
    id: str = field(default_factory=lambda: token_hex(_ID_BYTES))
    sends: int = 0  # requests since it became due that Telegram may have carried out
    is_task: bool = False  # the model does what the text asks, in a turn of its own
    is_first_party: bool = True  # no words of others stood in the prompt that made it
    name: str = ""  # the person's, for the turn of a task

    @property
    def turn_id(self) -> int:
        """The id of the turn that a due task begins: below zero, as no id of an update is."""
        return -(int(self.id, 16) * _MINUTES + round(self.due / 60) % _MINUTES) - 1

    @property
    def is_open(self) -> bool:
        """Whether it will be done; otherwise a button has to be pressed first."""
        return self.due > 0

    @property
    def needs_zone(self) -> bool:
        """Whether it cannot be due before the zone is known."""
        return not self.zone and bool(self.rule or not has_offset(self.at))

    def opened(self, due: float) -> Self:
        """Return the item as one that is due then."""
        return replace(self, due=due)

    def is_like(self, other: "WorkItem") -> bool:
        """Return whether both say the same at the same time."""
        return (self.kind, self.is_task, self.text, self.due, self.at, self.rule) == (
            *(other.kind, other.is_task, other.text, other.due, other.at, other.rule),
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
        is_plain = self.is_first_party and not self.is_task
        task = () if is_plain else (self.is_task, self.is_first_party, self.name)
        return orjson.dumps([*when, *where, self.kind, *task]).decode()

    @classmethod
    def of_stored(cls, id_: str, stored: bytes) -> Self:
        """Read the value of a field, which `memory/store/lua/shared/scope.lua` describes."""
        person, _, due, sends, _, _, body = stored.split(b"|", 6)
        text, at, rule, zone, chat_id, topic_id, message_id, language, *rest = orjson.loads(body)
        kind, *task = rest or [_FIRST_KIND]
        is_task, is_first_party, name = task or (False, True, "")
        return cls(
            person=int(person),
            text=text,
            kind=kind,
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
            is_task=is_task,
            is_first_party=is_first_party,
            name=name,
        )


def due_task(turn_id: int, now: float) -> tuple[str, float]:
    """Return the id of the item that began a turn, and when it was due, to the minute."""
    number, minutes = divmod(-turn_id - 1, _MINUTES)
    latest = round(now / 60) + _CLOCKS_DIFFER_MINUTES
    return f"{number:0{2 * _ID_BYTES}x}", 60 * (latest - (latest - minutes) % _MINUTES)


@dataclass(slots=True)
class WorkChanges:
    """What the tools of one answer change: items that are added, and those that are cancelled."""

    added: list[WorkItem] = field(default_factory=list)
    cancelled: list[WorkItem] = field(default_factory=list)

    def encode(self) -> str:
        """Return the stored form, "" for no changes."""
        added = [(each.id, each.person, round(each.due * 1000), each.body) for each in self.added]
        cancelled = [each.id for each in self.cancelled]
        return orjson.dumps([added, cancelled]).decode() if added or cancelled else ""
