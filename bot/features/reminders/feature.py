"""What reminders add to the bot."""

from collections.abc import Mapping
from functools import partial

from bot.commands.bot_command import ANYTHING, BotCommand
from bot.feature import Feature, Services
from bot.features.reminders.claims import promise_note
from bot.features.reminders.commands import VERB, RemindersCommand
from bot.features.reminders.due import STOP, DueReminders
from bot.features.reminders.questions import VERB as ANSWER
from bot.features.reminders.questions import ReminderButtons
from bot.features.reminders.time_zone import ask_for_zone
from bot.features.reminders.tools import KIND, ReminderTools
from memory.erasure.export import moment
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope


def feature(services: Services) -> Feature:
    """Return the feature."""
    reminders = services.memory.work.of_kind(KIND)
    scopes, sentences = services.memory.scopes, services.sentences

    async def zone_of(person: int, place: str) -> str:
        """Ask the model for the zone of a place, unless the person has used up their quota."""
        if not await services.budget.allows(person, services.memory.quotas):
            return ""
        return await ask_for_zone(services.models.internal, place)

    async def exported(conversation: Scope, facts: ScopeMemory) -> Mapping[str, object]:
        found = [
            {
                "text": each.text,
                "due": moment(each.due),
                "cron": each.rule or None,
                "time_zone": each.zone or None,
                **({"is_task": True} if each.is_task else {}),
            }
            for each in await reminders.list_open(conversation)
        ]
        return {"reminders": found, "time_zone": facts.zone or None}

    services.memory.exporter.shown_kinds.add(KIND)
    answers = ReminderButtons(reminders, scopes, sentences)
    listed = RemindersCommand(reminders, scopes, sentences, zone_of, answers)
    due = DueReminders(reminders, sentences)
    buttons = {VERB: listed.press, ANSWER: answers.press}
    return Feature(
        name="reminders",
        commands=[BotCommand("reminders", listed.answer, buttons=buttons, takes=ANYTHING)],
        behaviors=[ReminderTools(reminders, scopes, services.settings.timezone)],
        buttons={STOP: due.stop},
        steps=[due.check],
        notes=[answers.below, partial(promise_note, reminders, sentences), due.below],
        finishes=[due.finish],
        work=[due],
        exports=[exported],
    )
