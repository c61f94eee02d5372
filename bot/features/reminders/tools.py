"""The tools `set_reminder`, `list_reminders` and `cancel_reminder`, a behavior without memory."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from operator import attrgetter
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import Field

from bot.features.reminders.own_words import is_named, is_own_wish
from bot.features.reminders.time_zone import find_named_zone, read_zone, store_zone, zone_of_shared
from bot.turn.notes import QUESTION_ALONE
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.context import AgentContext, CallContext
from memory.behaviors.tool import Arguments, Tool, ToolError, must_ask
from memory.message import Message
from memory.scopes.scopes import Scopes
from memory.scopes.writes import ForgetRecord, Remember
from memory.store.keys import Scope
from memory.text.untrusted_text import UNTRUSTED_MARK, seen_by_people
from memory.work.item import MAX_AHEAD_S, UnusableTime, WorkItem
from memory.work.items import WorkItems

KIND = "reminder"
MAX_CHARS = 500  # characters of a reminder's text
MAX_OPEN, MAX_TASKS = 50, 10  # of a person, anywhere: open reminders, and tasks among them
SIGN = "⏰ "  # begins a reminder, and the message of a task, when it is due
_MAX_MINUTES = MAX_AHEAD_S // 60
_UNITS = (1, 60, 1_440, 10_080)  # minutes of a minute, an hour, a day and a week
_NOON = 12
_NUMBER = re.compile(r"\d+", re.ASCII)
_CRON = "Local, hourly at most: 0 9 * * 1-5. Not every 2nd week: offer 2#1,2#3 (1st, 3rd Tuesday)"


class SetReminderArguments(Arguments):
    """Arguments of `set_reminder`: one of `at`, `in_minutes` and `cron`."""

    text: str = Field(min_length=1, max_length=MAX_CHARS)
    at: str = Field(default="", description="Local time: 2031-05-24T09:00")
    in_minutes: int = 0
    cron: str = Field(default="", description=_CRON)
    is_task: bool = Field(default=False, description="You are asked the text then, and answer")
    time_zone: str = Field(default="", description="IANA, only if they said where they are")


class CancelReminderArguments(Arguments):
    """Arguments of `cancel_reminder`."""

    id: str


class ReminderTools(AIContextBehavior):
    """Sets, lists and cancels the reminders of the person who speaks, in this conversation."""

    instructions = (
        f"A message that begins with {SIGN}is a task that the person set earlier and that is due "
        f"now: do it. If it has nothing to tell them, answer only: {QUESTION_ALONE}"
    )

    def __init__(self, reminders: WorkItems, scopes: Scopes, default_zone: tzinfo) -> None:
        self._reminders = reminders
        self._scopes = scopes
        self._default_zone = default_zone  # for what is shown while the person's is not known
        own: partial[Tool[Any]] = partial(Tool, is_untrusted=False)
        self.functions = (
            own(
                "set_reminder",
                "Remind the person, if they ask: once (at, in_minutes) or repeatedly (cron).",
                SetReminderArguments,
                self._set,
            ),
            own(
                "list_reminders",
                "List the person's reminders here.",
                Arguments,
                self._list,
                is_reader=True,
            ),
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
        """Return the local time in a private chat, if the zone is known or was shared just now."""
        if not call_context.conversation.is_private:
            return ""
        person = call_context.speaker.id
        shared = [zone_of_shared(each.text) for each in new_messages if each.is_first_party]
        if zone := next(filter(None, shared), ""):
            await store_zone(self._scopes, person, zone)
        zone = zone or (await self._scopes.current(Scope.of_person(person))).zone
        return f"Their local time is {self._shown(call_context.now, zone)}." if zone else ""

    async def _set(self, arguments: SetReminderArguments, context: AgentContext) -> str:
        person = _person(context)
        known = await read_zone(self._scopes, person)
        open_now = await self._reminders.open_of(person)
        said = arguments.time_zone
        zone = await find_named_zone(said) if said else known
        if said and not zone:
            raise ToolError("unknown time zone; use an IANA name such as Asia/Tokyo")
        # What is due in minutes must not depend on the clock of the machine that answers.
        now = context.now + await self._reminders.clock_ahead_s()
        reminder = _wanted(arguments, zone, context, now)
        # Their message says text and time, but not that the model acts then: words of others may.
        asks = must_ask(context, Remember(arguments.text)) and not (
            zone == known and not reminder.is_task and _is_own(arguments, reminder, context)
        )
        reminder = replace(reminder, is_first_party=not asks)
        try:
            # Any zone tells whether there is such a time. A day more, because zones differ.
            slack_s = 86_400 if reminder.needs_zone else 0
            due = reminder.first_due(zone or "UTC", now - slack_s)
        except UnusableTime as error:
            raise ToolError(f"{error}; now it is {self._shown(now, zone)}") from error
        if asks or reminder.needs_zone:
            _add(reminder, context, open_now)
        if reminder.needs_zone:
            return (
                "Not set yet: their time zone is not known. A message with buttons asks them; if "
                "they name a city instead, call again with time_zone. If they wanted nothing "
                f"else, answer only: {QUESTION_ALONE}"
            )
        if asks:
            return (
                f"Not set yet, for {self._shown(due, zone)}: others' words are in play, so a "
                "message with buttons asks the person and says why. If they wanted nothing else, "
                f"answer only: {QUESTION_ALONE}"
            )
        if zone and not known:
            here = context.conversation, context.chat_history.version
            await store_zone(self._scopes, person, zone, here)
        waiting = await self._reminders.list_open(context.conversation, person, is_open=False)
        # One that waited for the zone is set below the answer, with all others that did.
        if not any(each.needs_zone and _said_in(each) == _said_in(reminder) for each in waiting):
            opened = reminder.opened(due)
            set_here = await self._reminders.list_open(context.conversation, person)
            same = (each for each in set_here if _said_in(each) == _said_in(opened))
            # Asked for twice, also by a turn that begins again after a crash, it is one.
            reminder = replace(opened, id=next((each.id for each in same), reminder.id))
            _add(reminder, context, open_now)
        when = self._shown(due, zone)
        return f"Set for {when}, id {reminder.id}; a line below your answer says so."

    async def _list(self, _: Arguments, context: AgentContext) -> str:
        found = await self._reminders.list_open(context.conversation, _person(context))
        lines = [
            f"{each.id}: {self._shown(each.due, each.zone)}"
            f"{f' (cron {each.rule})' if each.rule else ''}"
            f"{' (task)' if each.is_task else ''}: {each.text}"
            f"{'' if each.is_first_party else f' {UNTRUSTED_MARK}'}"
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
        context.work.cancelled += [each for each in wanted if each not in context.work.cancelled]
        return f"Cancelled: {wanted[0].text}"

    def _shown(self, at: float, zone: str) -> str:
        in_zone = ZoneInfo(zone) if zone else self._default_zone
        moment = datetime.fromtimestamp(at, in_zone)
        return f"{moment:%A} {moment.isoformat(timespec='minutes')} ({in_zone})"


_said_in = attrgetter("kind", "is_task", "text", "due", "at", "rule")
"""What two reminders have in common that say the same at the same time."""


def _add(reminder: WorkItem, context: AgentContext, open_now: Sequence[WorkItem]) -> None:
    """Note a reminder once; raise `ToolError` if the person has too many."""
    changes = context.work
    if any(_said_in(each) == _said_in(reminder) for each in changes.added):
        return
    gone = {each.id for each in changes.cancelled}
    if is_one_too_many(reminder, [e for e in (*open_now, *changes.added) if e.id not in gone]):
        what = f"{MAX_TASKS} tasks" if reminder.is_task else f"{MAX_OPEN} reminders"
        raise ToolError(f"the person has {what} already; one has to go first")
    changes.added.append(reminder)


def is_one_too_many(reminder: WorkItem, open_now: Sequence[WorkItem]) -> bool:
    """Return whether a person who has these may not have one more."""
    tasks = sum(each.is_task for each in open_now)
    return len(open_now) >= MAX_OPEN or (reminder.is_task and tasks >= MAX_TASKS)


def _is_own(arguments: SetReminderArguments, reminder: WorkItem, context: AgentContext) -> bool:
    """Return whether the person's new message alone says what a reminder says, and when.

    Of several reminders of one answer this holds for the first: words of others may have added
    more of them.
    """
    message = context.user_message
    added = {(each.text, each.at, each.rule) for each in context.work.added}
    if not message.is_first_party or added - {(reminder.text, reminder.at, reminder.rule)}:
        return False
    numbers = {int(each) for each in _NUMBER.findall(f"{arguments.at[8:13]} {arguments.cron}")}
    minutes = arguments.in_minutes
    numbers |= {minutes // unit for unit in _UNITS if minutes % unit == 0}
    numbers |= {each - _NOON for each in numbers if _NOON < each < 2 * _NOON}
    is_said = is_own_wish(message.text, reminder.text, numbers, repeats=bool(reminder.rule))
    return is_said and not is_named(reminder.text, _untrusted_texts(context))


def _wanted(
    arguments: SetReminderArguments, zone: str, context: AgentContext, now: float
) -> WorkItem:
    """Return the reminder as asked for, not due yet; raise `ToolError`."""
    if sum(map(bool, (arguments.at, arguments.in_minutes, arguments.cron))) != 1:
        raise ToolError("give exactly one of at, in_minutes and cron")
    text = seen_by_people(arguments.text).strip()
    if not text:
        raise ToolError("text says nothing; write what the person wants to be told")
    at = arguments.at
    if arguments.in_minutes:
        minutes = max(-1, min(arguments.in_minutes, 2 * _MAX_MINUTES))
        at = datetime.fromtimestamp(now + 60 * minutes, UTC).isoformat(timespec="seconds")
    message = context.user_message
    if arguments.is_task and message.is_task:
        raise ToolError("a task sets no further task; the person has to ask for it")
    return WorkItem(
        person=message.sender_id,
        text=text,
        at=at,
        rule=arguments.cron,
        zone=zone,
        message_id=message.ids_in_chat[-1] if message.ids_in_chat else message.replied_to,
        language=context.call_context.speaker.language,
        is_task=arguments.is_task,
        name=message.sender_name,
    )


def _person(context: AgentContext) -> int:
    """Return who speaks; raise `ToolError` for an account that no single person has."""
    if not context.call_context.speaker.id:
        raise ToolError("only a person who writes as themselves has reminders; say so")
    return context.user_message.sender_id


def _untrusted_texts(context: AgentContext) -> Iterator[str]:
    background = context.background
    shown = (*background.window, *background.recalled_messages(), *background.replied_to())
    yield from (each.text for each in (*shown, *context.user_messages) if not each.is_first_party)
    yield from (reply.quote for reply in background.replies)
    results = (result for step in context.completed_steps for result in step.results)
    yield from (result.text for result in results if result.is_untrusted)
    yield background.memory_context
