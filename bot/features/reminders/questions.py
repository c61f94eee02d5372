"""Says which reminders an answer sets and cancels, asks first if it has to, and hears the answer.

It asks if others' words are in play, or if the person's time zone is not known.
"""

import re
import time
from asyncio import to_thread
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from html import unescape

from bot.commands.sentences import Sentences
from bot.features.reminders.time_zone import (
    city_and_time,
    find_zone,
    read_zone,
    store_zone,
    zone_of_shared,
)
from bot.features.reminders.tools import KIND, MAX_OPEN, MAX_TASKS, is_one_too_many
from bot.reply.parts import Button, Part, Parts
from bot.reply.split import with_line
from bot.telegram.updates import ButtonPress
from bot.turn.notes import Below, called
from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import DOCUMENTS_HEADING
from memory.erasure.questions import NotConfirmed
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope
from memory.work.item import UnusableTime, WorkItem
from memory.work.items import WorkItems

VERB = "remind"
_YES, _NO = "y", "n"
_DATA = re.compile(r"([yn])([0-9a-f]{8}):?([\w/+-]*)", re.ASCII)
_PER_ROW = 2
_MINUTES, _MINUTES_A_DAY = 120, 1_440  # up to two hours are said in minutes
_MAX_AT_ONCE = 10


def _question(sentences: Sentences, language: str, reminder: WorkItem, why: str) -> Part:
    no = Button(sentences.text(language, "buttons.dont_remind"), f"{VERB}:{_NO}{reminder.id}")
    yes = f"{VERB}:{_YES}{reminder.id}"
    if not reminder.needs_zone:
        due = reminder.planned(reminder.zone, time.time())
        part = _said(sentences, language, "ask", reminder.opened(due), why)
        label = "buttons.do_task" if reminder.is_task else "buttons.remind"
        row = (Button(sentences.text(language, label), yes), no)
        return replace(part, buttons=(row,))
    key = f"reminders.{'task_' * reminder.is_task}ask_zone"
    *_, part = sentences.say(language, key, text=reminder.text)
    return replace(part, buttons=(*zone_buttons(sentences, language, yes), (no,)))


def zone_buttons(sentences: Sentences, language: str, data: str) -> tuple[tuple[Button, ...], ...]:
    """Return buttons for the zones of a language, in rows; a zone stands behind `data`.

    It reads a file, so call it in a thread.
    """
    buttons = []
    for zone in sentences.text(language, "reminders.zones").split():
        place = city_and_time(zone, language, sentences.languages)
        buttons.append(Button(" ".join(place), f"{data}:{zone}"))
    return tuple(tuple(buttons[at : at + _PER_ROW]) for at in range(0, len(buttons), _PER_ROW))


def _said(sentences: Sentences, language: str, how: str, reminder: WorkItem, *before: str) -> Part:
    """Return a sentence about a reminder, with its time as an entity, below those `before` it."""
    repeats = "_repeating" if reminder.rule and how != "cancelled" else ""
    moment = moment_of(sentences, language, reminder)
    key = f"reminders.{'task_' * reminder.is_task}{how}{repeats}"
    *_, part = sentences.say(language, *before, key, text=reminder.text, **moment)
    return part


def moment_of(sentences: Sentences, language: str, reminder: WorkItem) -> dict[str, object]:
    """Return when a reminder is due; to somebody whose clock is not known, how long it takes."""
    moment = sentences.local(language, reminder.due, reminder.zone)
    minutes = max(1, round((reminder.due - time.time()) / 60))
    if reminder.zone or minutes > _MINUTES_A_DAY:
        return moment
    unit, number = ("minutes", minutes) if minutes < _MINUTES else ("hours", minutes / 60)
    when = sentences.text(language, f"reminders.in_{unit}", number=number)
    return moment | {"when": unescape(when)}  # the sentence around it escapes it


class ReminderButtons:
    """Asks, and acts on the answers; only the person who is to be reminded may give one."""

    def __init__(self, reminders: WorkItems, scopes: Scopes, sentences: Sentences) -> None:
        self._reminders = reminders
        self._scopes = scopes
        self._sentences = sentences

    async def below(self, request: Request, context: AgentContext, _: str) -> Below:
        """Return a line for each reminder that is set or cancelled, and a question for others.

        If the person has said or shown where they are, what waited for their zone is set, too.
        """
        sentences, language = self._sentences, request.language
        added = [each for each in context.work.added if each.kind == KIND]
        cancelled = [each for each in context.work.cancelled if each.kind == KIND]
        lines = [_said(sentences, language, "set", each) for each in added if each.is_open]
        lines += [_said(sentences, language, "cancelled", each) for each in cancelled]
        has_passages = DOCUMENTS_HEADING in context.background.memory_context
        why = f"reminders.why_{'file' if has_passages else 'others'}"
        waiting = [each for each in added if not each.is_open]
        asked = [await to_thread(_question, sentences, language, each, why) for each in waiting]
        message = context.user_message
        has_zone = zone_of_shared(message.text) or "set_reminder" in called(context)
        if has_zone and message.sender_id:
            waited = await self.go_on(message.sender_id, context.conversation, language)
            asked += [part for part in waited if part.buttons]
            lines += [part for part in waited if not part.buttons]
        return Below(tuple(lines), tuple(asked))

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> Parts:
        """Open the reminder or drop it; a zone that was pressed is the person's from now on."""
        data = _DATA.fullmatch(rest)
        reminder = await self._reminders.find(conversation, data[2]) if data else None
        if data is None or reminder is None:
            raise NotConfirmed("unknown")
        action, id_, zone = data.groups()
        language = pressed.sender.language
        if reminder.person != pressed.sender.id:
            raise NotConfirmed("not_yours")
        opened: Parts = (_said(self._sentences, language, "set", reminder),)
        if reminder.is_open and (not zone or zone != reminder.zone):
            return opened
        if action == _NO:
            await self._reminders.cancel(conversation, id_)
            return self._sentences.say(language, "reminders.not_set")
        if zone:
            if find_zone(zone) != zone:
                raise NotConfirmed("unknown")
            await store_zone(self._scopes, reminder.person, zone)
        if not reminder.is_open:
            opened = await self._open(conversation, reminder, language)
        if not zone:
            return opened
        # One message takes the place of the button's. Another question keeps its own message.
        others = await self.go_on(reminder.person, conversation, language)
        return reduce(with_line, (each for each in others if not each.buttons), opened)

    async def go_on(self, person: int, conversation: Scope, language: str) -> Parts:
        """Set what waited for a person's zone, which is known now; ask for words of others."""
        parts: list[Part] = []
        waiting = await self._reminders.list_open(conversation, person, is_open=False)
        for each in [each for each in waiting if each.needs_zone][:_MAX_AT_ONCE]:
            with suppress(NotConfirmed):  # it was erased meanwhile
                if each.is_first_party:
                    parts += await self._open(conversation, each, language)
                else:
                    why = "reminders.why_others"
                    parts.append(_question(self._sentences, language, await self._zoned(each), why))
        return tuple(parts)

    async def ask_again(self, person: int, conversation: Scope, language: str) -> list[Part]:
        """Return the questions that wait for a person's answer."""
        waiting = await self._reminders.list_open(conversation, person, is_open=False)
        ask = partial(_question, self._sentences, language, why="reminders.why_others")
        return [await to_thread(ask, each) for each in waiting[:_MAX_AT_ONCE]]

    async def _zoned(self, reminder: WorkItem) -> WorkItem:
        """Return a reminder with the person's zone if it needs one; raise `NotConfirmed`."""
        if not reminder.needs_zone:
            return reminder
        if zone := await read_zone(self._scopes, reminder.person):
            return replace(reminder, zone=zone)
        raise NotConfirmed("unknown")

    async def _open(self, conversation: Scope, reminder: WorkItem, language: str) -> Parts:
        """Set a reminder that the person has agreed to, or say why that is not possible."""
        if is_one_too_many(reminder, await self._reminders.open_of(reminder.person)):
            key = "reminders.tasks_full" if reminder.is_task else "reminders.full"
            most = MAX_TASKS if reminder.is_task else MAX_OPEN
            return self._sentences.say(language, key, max=most)
        reminder = await self._zoned(reminder)
        now = time.time() + await self._reminders.clock_ahead_s()
        try:
            reminder = reminder.opened(reminder.first_due(reminder.zone, now))
        except UnusableTime:
            await self._reminders.cancel(conversation, reminder.id)
            return self._sentences.say(language, "reminders.passed")
        if not await self._reminders.confirm(conversation, reminder):
            raise NotConfirmed("unknown")
        return (_said(self._sentences, language, "set", reminder),)
