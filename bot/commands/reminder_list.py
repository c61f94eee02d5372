"""`/reminders`: a person's open reminders in this conversation, and their time zone."""

from collections.abc import Mapping

from bot.commands.bot_command import Answer
from bot.commands.paged_list import CONFIRMED, ListChange, ListContent, ListEntry, PagedList
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import NotConfirmed
from memory.reminders.reminders import Reminders
from memory.reminders.time_zone import TimeZones, find_zone
from memory.store.keys import Scope

VERB = "reminders"


class ReminderList:
    """The reminders of one person, who alone may press the buttons."""

    actions: Mapping[str, str] = {CONFIRMED: "buttons.cancel_reminder"}

    def __init__(
        self, person: int, reminders: Reminders, zones: TimeZones, sentences: Sentences
    ) -> None:
        self.verb = f"{VERB}:{person}"
        self._person = person
        self._reminders = reminders
        self._zones = zones
        self._sentences = sentences

    async def content(self, language: str, conversation: Scope) -> ListContent:
        """Return the reminders, the next one first, and what is known of the time zone."""
        zone = await self._zones.read_zone(self._person)
        found = await self._reminders.list_open(conversation, self._person)
        entries = [
            ListEntry(
                each.id,
                "reminders.line_repeating" if each.rule else "reminders.line",
                {"text": each.text, **self._sentences.local(language, each.due, each.zone)},
            )
            for each in found
        ]
        keys = [] if found else ["reminders.none"]
        keys.append("reminders.zone" if zone else "reminders.no_zone")
        above = [self._sentences.text(language, key, zone=zone) for key in keys]
        return ListContent("reminders.listed", entries, above=above)

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Accept each code: `act` finds only the person's own reminders."""

    async def act(self, conversation: Scope, action: str, code: str) -> ListChange:
        """Cancel a reminder; one that is gone changes nothing."""
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        own = await self._reminders.list_open(conversation, self._person)
        if code in {each.id for each in own}:
            await self._reminders.cancel(conversation, code)
        return ListChange("reminders.done_cancelled")


class RemindersCommand:
    """Shows the list, or takes a place whose time zone is the person's from now on."""

    def __init__(self, reminders: Reminders, zones: TimeZones, sentences: Sentences) -> None:
        self._reminders = reminders
        self._zones = zones
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        sender = asked.sender
        if not sender.is_person:
            return Answer(self._sentences.say(sender.language, "error.anonymous_admin"))
        if not asked.text:
            return await self._list(sender.id).show(asked, conversation)
        zone = find_zone(asked.text)
        if zone:
            await self._zones.store_zone(sender.id, zone)
        key = "reminders.zone_set" if zone else "reminders.unknown_zone"
        values = {"zone": zone, "place": asked.text[:64]}
        return Answer(self._sentences.say(sender.language, key, **values))

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> tuple[Part, ...]:
        """Turn the page or cancel a reminder."""
        person, _, pressed_on = rest.partition(":")
        if person != str(pressed.sender.id):
            raise NotConfirmed("not_yours")
        return await self._list(pressed.sender.id).press(pressed, conversation, pressed_on)

    def _list(self, person: int) -> PagedList:
        source = ReminderList(person, self._reminders, self._zones, self._sentences)
        return PagedList(source, self._sentences)
