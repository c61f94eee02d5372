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
from bot.telegram.updates import IncomingMessage
from memory.erasure.export import moment
from memory.limits.quotas import Quota, Verdict
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope


def feature(services: Services) -> Feature:
    """Return the feature."""
    reminders = services.memory.work.of_kind(KIND)
    scopes, quotas, sentences = services.memory.scopes, services.memory.quotas, services.sentences

    async def zone_of(asked: IncomingMessage, place: str) -> str:
        """Ask the model for the zone of a place, at most five times an hour for one person."""
        if not await services.budget.allows(as_turn=True):
            return ""
        who, limit = f"{asked.sender.id}:zone", Quota(turns=5, window_ms=3_600_000)
        if await quotas.admit(who, str(asked.update_id), limit) is not Verdict.ADMITTED:
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
