"""`WorkItem`: something that is due for one person, as a value and in its stored form. Pure.

It is due at a time in a zone, or by a rule that repeats: a cron expression of five fields, because
models write these reliably. `cronsim` follows Debian's cron when clocks change: a time that is
skipped in spring becomes the first moment after the gap, and one that comes twice counts once.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from secrets import token_hex
from typing import Self
from zoneinfo import ZoneInfo

import orjson
from cronsim import CronSim, CronSimError

_ID_BYTES = 4
_MINUTES = 1 << 20
"""The minutes of about two years; with an id they fit into the integers that Redis keeps exact."""
_CLOCKS_DIFFER_MINUTES = 60
MAX_CLOSED_S = 30 * 86_400  # then what is due in a closed chat ends
MAX_WAIT_S = 86_400  # between two tries while it is closed
BEGUN = 99  # the requests of a task that is not due again and whose turn has begun
_BODY = ("text", "at", "rule", "zone", "chat_id", "topic_id", "message_id", "language", "kind")
_BODY_OF_TASK = ("is_task", "is_first_party", "name", "closed_since")
"""What is stored as JSON that scripts do not read, in this order."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Something that is due for one person, once or again and again."""

    person: int
    text: str
    # The `Work` of a feature that knows what is to be done. Items of the first release have none.
    kind: str = "reminder"
    at: str = ""  # a local time ...
    rule: str = ""  # ... or a cron rule
    zone: str = ""  # an IANA name; "" while it is not known
    due: float = 0  # Unix seconds; 0 while the person has not agreed or has no time zone yet
    chat_id: int = 0
    topic_id: int = 0  # negative: the topic is gone, so the chat itself gets it, once
    message_id: int = 0  # the person's message that asked for it
    language: str = "en"
    id: str = field(default_factory=lambda: token_hex(_ID_BYTES))
    sends: int = 0  # requests since it became due that Telegram may have carried out
    is_task: bool = False  # the model does what the text asks, in a turn of its own
    is_first_party: bool = True  # no words of others stood in the prompt that made it
    name: str = ""  # the person's, for the turn of a task
    # Since when a closed chat has refused the answers of a task. When the task ends because of
    # that, this stays, and `is_task` does not.
    closed_since: float = 0

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

    def first_due(self, zone: str, now: float) -> float:
        """Return when it is due first in a zone; raise `UnusableTime`."""
        due = self.planned(zone, now)
        if due <= now:
            raise UnusableTime("that time has passed")
        if due > now + MAX_AHEAD_S:
            raise UnusableTime("that is more than five years away")
        return due

    def planned(self, zone: str, now: float) -> float:
        """Return the same, even if the time has passed."""
        return next_due(self.rule, zone, now) if self.rule else due_at(self.at, zone)

    def due_after(self, now: float) -> float:
        """Return when it is due next, 0 for never again: what was missed is not made up for."""
        return next_due(self.rule, self.zone, max(now, self.due)) if self.rule else 0

    def after_closed(self, now: float, open_at: float = 0) -> Self:
        """Return what becomes of a task that repeats and whose answer a closed chat refused."""
        since = self.closed_since if self.closed_since > open_at else now
        if now - since >= MAX_CLOSED_S:
            return replace(self, is_task=False, rule="", due=now)
        # Each try costs an answer, so the next one waits until the chat is closed twice as long.
        due = self.planned(self.zone, now + min(now - since, MAX_WAIT_S))
        return replace(self, due=max(due, self.due), closed_since=since)

    @property
    def body(self) -> str:
        """The stored form of what scripts do not read."""
        is_plain = self.is_first_party and not self.is_task and not self.closed_since
        names = (*_BODY, *(() if is_plain else _BODY_OF_TASK))
        return orjson.dumps([getattr(self, name) for name in names]).decode()

    @classmethod
    def of_stored(cls, id_: str, stored: bytes) -> Self:
        """Read the value of a field, which `memory/store/lua/shared/work.lua` describes."""
        person, _, due, sends, _, _, body = stored.split(b"|", 6)
        # An item of the first release has no kind, and few have the fields of a task.
        read = dict(zip((*_BODY, *_BODY_OF_TASK), orjson.loads(body), strict=False))
        return cls(person=int(person), due=int(due) / 1000, id=id_, sends=int(sends), **read)


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


MAX_AHEAD_S = 5 * 366 * 86_400  # work is at most five years away
_MAX_RULE_CHARS = 64
_FIELDS = 5
_NO_TIME = "that is no time; write it as 2031-05-24T09:00"


class UnusableTime(ValueError):
    """Raised for a time or a rule that no item can have. The text tells the model why."""


def due_at(at: str, zone: str) -> float:
    """Return a local time as Unix seconds; a time with an offset of its own needs no zone.

    A time that clocks skip in spring is as much later as the gap is long; of a time that comes
    twice in autumn this is the first one.
    """
    try:
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=ZoneInfo(zone))
        return moment.timestamp()
    except (ValueError, OverflowError):
        raise UnusableTime(_NO_TIME) from None


def has_offset(at: str) -> bool:
    """Return whether a time says itself how far it is from UTC."""
    try:
        return datetime.fromisoformat(at).tzinfo is not None
    except ValueError:
        raise UnusableTime(_NO_TIME) from None


def next_due(rule: str, zone: str, after: float) -> float:
    """Return when a rule is due next, in Unix seconds; raise `UnusableTime`."""
    try:
        moments = CronSim(rule[:_MAX_RULE_CHARS], datetime.fromtimestamp(after, ZoneInfo(zone)))
        is_plain = len(rule) <= _MAX_RULE_CHARS and len(rule.split()) == _FIELDS
        if not is_plain or len(moments.minutes) != 1:
            raise UnusableTime("a cron rule has five fields, the first one minute: hourly at most")
        # In an hour that comes twice, `moments` begin with the first one, which may have passed.
        return next(due for each in moments if (due := each.timestamp()) > after)
    except (CronSimError, StopIteration):
        raise UnusableTime("this cron rule never comes; write one such as 0 9 * * 1") from None
