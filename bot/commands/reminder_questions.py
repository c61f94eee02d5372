"""Says which reminders an answer sets and cancels, asks first if it has to, and hears the answer.

It asks if others' words are in play, or if the person's time zone is not known.
"""

import asyncio
import re
import time
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import NotConfirmed
from memory.reminders.reminder import Reminder, ReminderChanges
from memory.reminders.reminders import MAX_OPEN, Reminders
from memory.reminders.schedule import UnusableTime
from memory.reminders.time_zone import TimeZones, find_zone
from memory.store.keys import Scope

VERB = "remind"
_YES, _NO = "y", "n"
_DATA = re.compile(r"([yn])([0-9a-f]{8}):?([\w/+-]*)", re.ASCII)
_PER_ROW = 2
_TRIES = 20
_PAUSE_S = 0.25


def in_chat(changes: ReminderChanges, asked: IncomingMessage) -> ReminderChanges:
    """Return the changes, with the chat in which the new reminders were asked for."""
    added = [
        replace(each, chat_id=asked.chat_id, topic_id=asked.topic_id) for each in changes.added
    ]
    return replace(changes, added=added)


def reminder_lines(
    sentences: Sentences, language: str, changes: ReminderChanges
) -> tuple[Part, ...]:
    """Return a line for each reminder that is set or cancelled without a question."""
    said = [_said(sentences, language, "set", each) for each in changes.added if each.is_open]
    said += [_said(sentences, language, "cancelled", each) for each in changes.cancelled]
    return tuple(said)


def reminder_questions(
    sentences: Sentences, language: str, changes: ReminderChanges
) -> tuple[Part, ...]:
    """Return a question with buttons for each reminder that the person has to agree to."""
    return tuple(_question(sentences, language, each) for each in changes.added if not each.is_open)


def _question(sentences: Sentences, language: str, reminder: Reminder) -> Part:
    no = Button(sentences.text(language, "buttons.dont_remind"), f"{VERB}:{_NO}{reminder.id}")
    yes = f"{VERB}:{_YES}{reminder.id}"
    if not reminder.needs_zone:
        due = reminder.planned(reminder.zone, time.time())
        part = _said(sentences, language, "ask", reminder.opened(due))
        row = (Button(sentences.text(language, "buttons.remind"), yes), no)
        return replace(part, buttons=(row,))
    *_, part = sentences.say(language, "reminders.ask_zone", text=reminder.text)
    zones = sentences.text(language, "reminders.zones").split()
    buttons = [Button(_label(zone), f"{yes}:{zone}") for zone in zones]
    rows = [tuple(buttons[at : at + _PER_ROW]) for at in range(0, len(buttons), _PER_ROW)]
    return replace(part, buttons=(*rows, (no,)))


def _label(zone: str) -> str:
    """Return a zone's city with the time there, by which people know their zone."""
    city = zone.rpartition("/")[2].replace("_", " ")
    return f"{city} {datetime.now(ZoneInfo(zone)):%H:%M}"


def _said(sentences: Sentences, language: str, how: str, reminder: Reminder) -> Part:
    """Return a sentence about a reminder, with its time as an entity."""
    repeats = "_repeating" if reminder.rule and how != "cancelled" else ""
    moment = sentences.local(language, reminder.due, reminder.zone)
    key = f"reminders.{how}{repeats}"
    *_, part = sentences.say(language, key, text=reminder.text, **moment)
    return part


class ReminderButtons:
    """Acts on the answers; only the person who is to be reminded may give one."""

    def __init__(self, reminders: Reminders, zones: TimeZones, sentences: Sentences) -> None:
        self._reminders = reminders
        self._zones = zones
        self._sentences = sentences

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> tuple[Part, ...]:
        """Open the reminder or drop it; a zone that was pressed is the person's from now on."""
        data = _DATA.fullmatch(rest)
        if data is None:
            raise NotConfirmed("unknown")
        action, id_, zone = data.groups()
        language = pressed.sender.language
        reminder = await self._found(conversation, id_)
        if reminder.person != pressed.sender.id:
            raise NotConfirmed("not_yours")
        if action == _NO:
            if not reminder.is_open:
                await self._reminders.cancel(conversation, id_)
                return self._sentences.say(language, "reminders.not_set")
            return (_said(self._sentences, language, "set", reminder),)
        if not reminder.is_open:
            if await self._reminders.count_open(reminder.person) >= MAX_OPEN:
                return self._sentences.say(language, "reminders.full", max=MAX_OPEN)
            reminder = await self._agreed(reminder, zone)
            if not reminder.is_open:
                await self._reminders.cancel(conversation, id_)
                return self._sentences.say(language, "reminders.passed")
            if not await self._reminders.confirm(conversation, reminder):
                raise NotConfirmed("unknown")
        return (_said(self._sentences, language, "set", reminder),)

    async def _found(self, conversation: Scope, id_: str) -> Reminder:
        """Return the reminder; wait for the turn that is about to store it."""
        for _ in range(_TRIES):
            if found := await self._reminders.find(conversation, id_):
                return found
            if not await self._reminders.is_on_its_way(conversation, id_):
                break
            await asyncio.sleep(_PAUSE_S)
        raise NotConfirmed("unknown")

    async def _agreed(self, reminder: Reminder, zone: str) -> Reminder:
        """Return the reminder as it is set now; not open if its time has passed."""
        if reminder.needs_zone:
            if not zone or find_zone(zone) != zone:
                raise NotConfirmed("unknown")
            await self._zones.store_zone(reminder.person, zone)
            reminder = replace(reminder, zone=zone)
        try:
            return reminder.opened(reminder.first_due(reminder.zone, time.time()))
        except UnusableTime:
            return reminder
