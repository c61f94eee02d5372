"""When work is due: a time in a zone, or a rule that repeats. Pure.

A rule is a cron expression of five fields, because models write these reliably. `cronsim` follows
Debian's cron when clocks change: a time that is skipped in spring becomes the first moment after
the gap, and a time that comes twice in autumn counts once.
"""

from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

MAX_AHEAD_S = 5 * 366 * 86_400
"""Work is at most five years away."""

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
        return next(moments).timestamp()
    except (CronSimError, StopIteration):
        raise UnusableTime("this cron rule never comes; write one such as 0 9 * * 1") from None


def check_due(due: float, now: float) -> None:
    """Raise `UnusableTime` unless an item may be due then."""
    if due <= now:
        raise UnusableTime("that time has passed")
    if due > now + MAX_AHEAD_S:
        raise UnusableTime("that is more than five years away")
