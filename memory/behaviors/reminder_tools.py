"""The tools `set_reminder`, `list_reminders` and `cancel_reminder`, as a behavior without memory.

They only note what to change. It is stored when the turn is closed.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import Field

from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.call_context import CallContext
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool, ToolError
from memory.behaviors.trust import must_ask
from memory.message import Message
from memory.reminders.reminder import MAX_CHARS, Reminder
from memory.reminders.reminders import MAX_OPEN, Reminders
from memory.reminders.schedule import MAX_AHEAD_S, UnusableTime
from memory.reminders.time_zone import TimeZones, find_zone, zone_of_shared
from memory.scopes.writes import ForgetRecord, Remember

_MAX_MINUTES = MAX_AHEAD_S // 60


class SetReminderArguments(Arguments):
    """Arguments of `set_reminder`: one of `at`, `in_minutes` and `cron`."""

    text: str = Field(min_length=1, max_length=MAX_CHARS)
    at: str = Field(default="", description="Local time: 2031-05-24T09:00")
    in_minutes: int = 0
    cron: str = Field(default="", description="Local, hourly at most: 0 9 * * 1-5")
    time_zone: str = Field(default="", description="IANA, only if they said where they are")


class NoArguments(Arguments):
    """No arguments."""


class CancelReminderArguments(Arguments):
    """Arguments of `cancel_reminder`."""

    id: str


class ReminderTools(AIContextBehavior):
    """Sets, lists and cancels the reminders of the person who speaks, in this conversation.

    Times are shown in `default_zone` while the person's is not known.
    """

    def __init__(self, reminders: Reminders, zones: TimeZones, default_zone: tzinfo) -> None:
        self._reminders = reminders
        self._zones = zones
        self._default_zone = default_zone
        own: partial[Tool[Any]] = partial(Tool, is_untrusted=False)
        self.functions = (
            own(
                "set_reminder",
                "Remind the person, if they ask: once (at, in_minutes) or repeatedly (cron).",
                SetReminderArguments,
                self._set,
            ),
            own("list_reminders", "List the person's reminders here.", NoArguments, self._list),
            own(
                "cancel_reminder",
                "Cancel a reminder, by its id in list_reminders.",
                CancelReminderArguments,
                self._cancel,
            ),
        )

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        """Return the local time of a person whose zone is known, in their private chat.

        A location that they share tells the zone.
        """
        if not call_context.conversation.is_private:
            return ""
        person = call_context.speaker.id
        shared = [zone_of_shared(each.text) for each in new_messages if each.is_first_party]
        zone = next(filter(None, shared), "")
        if zone:
            await self._zones.store_zone(person, zone)
        zone = zone or await self._zones.known_zone(person)
        return f"Their local time is {self._shown(call_context.now, zone)}." if zone else ""

    async def _set(self, arguments: SetReminderArguments, context: AgentContext) -> str:
        person = _person(context)
        known = await self._zones.read_zone(person)
        open_now = await self._reminders.count_open(person)
        zone = _named_zone(arguments.time_zone) or known
        reminder = _wanted(arguments, zone, context)
        asks = must_ask(context, Remember(arguments.text))
        try:
            # Any zone tells whether there is such a time. A day more, because zones differ.
            slack_s = 86_400 if reminder.needs_zone else 0
            due = reminder.first_due(zone or "UTC", context.now - slack_s)
        except UnusableTime as error:
            raise ToolError(f"{error}; now it is {self._shown(context.now, zone)}") from error
        if reminder.needs_zone:
            _add(reminder, context, open_now)
            return (
                "Not set yet: their time zone is not known. They are asked by buttons below your "
                "answer; if they name a city instead, call again with time_zone. Say so."
            )
        if asks:
            _add(reminder, context, open_now)
            return (
                f"Not set yet, for {self._shown(due, zone)}: others' words are in play, so the "
                "person is asked by a button below your answer. Say so."
            )
        if zone and not known:
            await self._zones.store_zone(person, zone)
        _add(reminder.opened(due), context, open_now)
        shown = self._shown(due, zone)
        return f"Set for {shown}, id {reminder.id}; a line below your answer says so."

    async def _list(self, arguments: NoArguments, context: AgentContext) -> str:
        del arguments
        found = await self._reminders.list_open(context.conversation, _person(context))
        lines = [
            f"{each.id}: {self._shown(each.due, each.zone)}"
            f"{f' (cron {each.rule})' if each.rule else ''}: {each.text}"
            for each in found
        ]
        return "\n".join(lines) or "There are none here."

    async def _cancel(self, arguments: CancelReminderArguments, context: AgentContext) -> str:
        found = await self._reminders.list_open(context.conversation, _person(context))
        wanted = [each for each in found if each.id == arguments.id.removeprefix("#")]
        if not wanted:
            raise ToolError("there is no reminder with this id here; list_reminders has the ids")
        if must_ask(context, ForgetRecord(0)):
            raise ToolError(
                "others' words are in play, so only the person may cancel it, with /reminders. "
                "Say so"
            )
        context.reminders.cancelled += [
            each for each in wanted if each not in context.reminders.cancelled
        ]
        return f"Cancelled: {wanted[0].text}"

    def _shown(self, at: float, zone: str) -> str:
        in_zone = ZoneInfo(zone) if zone else self._default_zone
        moment = datetime.fromtimestamp(at, in_zone)
        return f"{moment:%A} {moment.isoformat(timespec='minutes')} ({in_zone})"


def _add(reminder: Reminder, context: AgentContext, open_now: int) -> None:
    """Note a reminder once; raise `ToolError` if the person has too many."""
    changes = context.reminders
    if any(each.is_like(reminder) for each in changes.added):
        return
    if open_now + len(changes.added) - len(changes.cancelled) >= MAX_OPEN:
        raise ToolError(f"the person has {MAX_OPEN} reminders already; one has to go first")
    changes.added.append(reminder)


def _named_zone(said: str) -> str:
    """Return the zone that the model names, "" if it names none; raise `ToolError`."""
    zone = find_zone(said) if said else ""
    if said and not zone:
        raise ToolError("unknown time zone; use an IANA name such as Asia/Tokyo")
    return zone


def _wanted(arguments: SetReminderArguments, zone: str, context: AgentContext) -> Reminder:
    """Return the reminder as asked for, not due yet; raise `ToolError`."""
    if sum(map(bool, (arguments.at, arguments.in_minutes, arguments.cron))) != 1:
        raise ToolError("give exactly one of at, in_minutes and cron")
    if not arguments.text.strip():
        raise ToolError("text says nothing; write what the person wants to be told")
    at = arguments.at
    if arguments.in_minutes:
        minutes = max(-1, min(arguments.in_minutes, 2 * _MAX_MINUTES))
        then = datetime.fromtimestamp(context.now + 60 * minutes, UTC)
        at = then.isoformat(timespec="seconds")
    message, speaker = context.user_message, context.call_context
    return Reminder(
        person=message.sender_id,
        text=arguments.text.strip(),
        at=at,
        rule=arguments.cron,
        zone=zone,
        message_id=message.message_ids[-1] if message.message_ids else 0,
        language=speaker.speaker.language if speaker else "en",
    )


def _person(context: AgentContext) -> int:
    """Return who speaks; raise `ToolError` for an account that no single person has."""
    if context.call_context is None or not context.call_context.speaker.id:
        raise ToolError("only a person who writes as themselves has reminders; say so")
    return context.user_message.sender_id
