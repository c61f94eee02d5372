"""`/reminders`: a person's open reminders in this conversation, and their time zone."""

from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from bot.commands.bot_command import Answer
from bot.commands.paged_list import CONFIRMED, ListChange, ListContent, ListEntry, PagedList
from bot.commands.sentences import Sentences
from bot.features.reminders.questions import ReminderButtons, moment_of, zone_buttons
from bot.features.reminders.time_zone import (
    MAX_CHARS,
    city_and_time,
    find_named_zone,
    find_zone,
    read_zone,
    store_zone,
)
from bot.reply.parts import Parts, shortened
from bot.reply.split import with_line
from bot.telegram.updates import ButtonPress, IncomingMessage, Sender
from memory.erasure.questions import NotConfirmed
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope
from memory.work.items import WorkItems

VERB = "reminders"
_LINE_UNITS = 220
_ZONE = "zone"  # stands in callback data between the person and the zone that they press


class ReminderList:
    """The reminders of one person, who alone may press the buttons."""

    actions: Mapping[str, str] = {CONFIRMED: "buttons.cancel_reminder"}

    def __init__(
        self, person: int, reminders: WorkItems, scopes: Scopes, sentences: Sentences
    ) -> None:
        self.verb = f"{VERB}:{person}"
        self._person = person
        self._reminders = reminders
        self._scopes = scopes
        self._sentences = sentences

    async def content(self, language: str, conversation: Scope, _: int) -> ListContent:
        """Return the reminders, the next one first, and what is known of the time zone."""
        zone = await read_zone(self._scopes, self._person)
        found = await self._reminders.list_open(conversation, self._person)
        entries = [
            ListEntry(
                each.id,
                "reminders.line_repeating" if each.rule else "reminders.line",
                {
                    "text": f"{'▶ ' * each.is_task}{shortened(each.text, _LINE_UNITS)}",
                    **moment_of(self._sentences, language, each),
                },
            )
            for each in found
        ]
        keys = [] if found else ["reminders.none", "reminders.task_example"]
        keys.append("reminders.zone" if zone else "reminders.no_zone")
        known = self._sentences.languages
        place = await to_thread(city_and_time, zone, language, known) if zone else ()
        shown = self._sentences.joined(language, place)
        above = [self._sentences.text(language, key, zone=shown) for key in keys]
        return ListContent("reminders.listed", entries, above=above)

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Accept each code: `act` finds only the person's own reminders."""

    async def act(self, _: ButtonPress, here: Scope, action: str, code: str) -> ListChange:
        """Cancel a reminder; one that is gone changes nothing."""
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        own = await self._reminders.list_open(here, self._person)
        if code in {each.id for each in own}:
            await self._reminders.cancel(here, code)
        return ListChange("reminders.done_cancelled")


@dataclass(frozen=True, slots=True, eq=False)
class RemindersCommand:
    """Shows the list, or takes a place whose time zone is the person's from now on."""

    reminders: WorkItems
    scopes: Scopes
    sentences: Sentences
    ask_for_zone: Callable[[IncomingMessage, str], Awaitable[str]]  # of the place; "" if unknown
    answers: ReminderButtons

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        sender, place = asked.sender, asked.text.strip()[:MAX_CHARS]
        if not sender.is_person:
            return Answer(self.sentences.say(sender.language, "error.anonymous_admin"))
        if not place:
            shown = await self._list(sender.id).show(asked, conversation)
            waiting = await self.answers.ask_again(sender.id, conversation, sender.language)
            return replace(shown, parts=(*shown.parts, *waiting))
        before = await self.scopes.read(Scope.of_person(sender.id))
        zone = await find_named_zone(place) or await self.ask_for_zone(asked, place)
        if zone:
            # The person may have been forgotten while the model was asked.
            await store_zone(self.scopes, sender.id, zone, (before.scope, before.version))
            return Answer(await self._go_on(sender, conversation, zone))
        *_, unknown = self.sentences.say(sender.language, "reminders.unknown_zone", place=place)
        data = f"{VERB}:{sender.id}:{_ZONE}"
        buttons = await to_thread(zone_buttons, self.sentences, sender.language, data)
        return Answer((replace(unknown, buttons=buttons),))

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> Parts:
        """Turn the page, cancel a reminder, or take a zone."""
        person, _, pressed_on = rest.partition(":")
        if person != str(pressed.sender.id):
            raise NotConfirmed("not_yours")
        what, _, zone = pressed_on.partition(":")
        if what == _ZONE:
            if not zone or find_zone(zone) != zone:
                raise NotConfirmed("unknown")
            await store_zone(self.scopes, pressed.sender.id, zone)
            said, *others = await self._go_on(pressed.sender, conversation, zone)
            return reduce(with_line, (each for each in others if not each.buttons), (said,))
        return await self._list(pressed.sender.id).press(pressed, conversation, pressed_on)

    async def _go_on(self, sender: Sender, conversation: Scope, zone: str) -> Parts:
        """Say the time in a person's new zone, and go on with what waited for it."""
        language = sender.language
        city, now = await to_thread(city_and_time, zone, language, self.sentences.languages)
        said = self.sentences.say(language, "reminders.zone_set", zone=city, time=now)
        return (*said, *await self.answers.go_on(sender.id, conversation, language))

    def _list(self, person: int) -> PagedList:
        source = ReminderList(person, self.reminders, self.scopes, self.sentences)
        return PagedList(source, self.sentences)
