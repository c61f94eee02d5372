"""Puts this room together from the settings; used by the composition root alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.commands import dead_letters
from bot.commands.buttons import Act
from bot.commands.consent import ConsentButtons
from bot.commands.export import ExportCommand
from bot.commands.general import EveryonesCommands, Facts, Handler
from bot.commands.memory_list import VERB, MemoryPages
from bot.commands.operators import AdminCommands, ModelsInUse
from bot.commands.sentences import Sentences
from bot.commands.usage import UsageBounds, UsageCommand
from bot.metrics.budget import Budget
from bot.metrics.prices import Prices
from bot.model.resting import Rest
from bot.telegram.bot_account import BotIdentity
from bot.telegram.chat import Chat
from config.settings import Settings
from memory.memory import Memory


@dataclass(frozen=True, slots=True)
class CommandRoom:
    """What people and operators may ask of the bot itself: commands, and verbs of buttons."""

    commands: Mapping[str, Handler]
    buttons: Mapping[str, Act]


@dataclass(frozen=True, slots=True)
class Running:
    """What this process knows of itself: its account, and how its first model is."""

    me: BotIdentity
    rest: Rest


def command_room(
    settings: Settings,
    memory: Memory,
    telegram: Chat,
    sentences: Sentences,
    running: Running,
) -> CommandRoom:
    """Return the room."""
    facts = Facts(running.me, settings.admin_user_ids, settings.memory_ttl_days)
    pages = MemoryPages(memory, sentences, telegram, settings.window_messages)
    admins = settings.admin_user_ids
    letters = dead_letters.DeadLetterCommand(memory.dead_letters, sentences, admins)
    models = ModelsInUse(settings.openai_model, settings.fallback_model or "", running.rest)
    others = {"deadletters": letters.show}
    budget = Budget(settings.budget_per_month, Prices(settings.prices), memory.usage)
    bounds = UsageBounds(settings.user_tokens_per_day, admins)
    export = ExportCommand(memory.exporter, sentences, telegram)
    return CommandRoom(
        commands={
            **EveryonesCommands(memory, sentences, telegram, facts).handlers,
            "memory": pages.show,
            "export": export.export,
            "usage": UsageCommand(memory, sentences, budget, bounds).show,
            **AdminCommands(memory, sentences, admins, others, models).handlers,
        },
        buttons={
            VERB: pages.press,
            dead_letters.VERB: letters.press,
            **ConsentButtons(memory.consent, sentences, telegram).acts,
        },
    )
