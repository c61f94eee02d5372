"""Lists all commands and builds them; used by the composition root alone.

To add a command: write a file with its handler, list it here, and add its sentences to all files of
`bot/language`. Menus, /help and the checks follow from the list.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bot.commands.access import Access
from bot.commands.arguments import CommandWords
from bot.commands.bot_command import ANYTHING, Answer, BotCommand, ButtonHandler, Handler, when
from bot.commands.erasing import Deleting, ErasingCommands, Receipts
from bot.commands.export import ExportCommand
from bot.commands.fact_edits import COMMAND as EDITED
from bot.commands.fact_edits import FactEdits
from bot.commands.general import GeneralCommands, HelpCommand, Surroundings
from bot.commands.immediate import StopCommand
from bot.commands.memory_deletion import MemoryDeletion
from bot.commands.memory_entries import MemoryEntries
from bot.commands.memory_list import MemoryList
from bot.commands.memory_settings import MemorySettings
from bot.commands.mute import MuteCommand
from bot.commands.operators import (
    ModelsInUse,
    ReloadAll,
    ReloadCommand,
    StatsCommands,
    cannot_reload,
)
from bot.commands.privacy import PrivacyCommand
from bot.commands.recall import JUMP, RecallCommand
from bot.commands.retry import RetryCommand
from bot.commands.sentences import Sentences
from bot.costs.budget import Budget
from bot.feature import Feature, Services
from bot.model.circuit_breaker import CircuitBreaker
from bot.telegram.bot_account import BotIdentity
from bot.telegram.updates import IncomingMessage
from bot.turn.tool_questions import ToolButtons
from config.settings import Settings
from memory.memory import Memory
from memory.store.keys import Scope

_MESSAGE_ID = re.compile(r"\d{1,12}")


@dataclass(frozen=True, slots=True)
class Running:
    """What only a running bot knows or does, and the features that are on."""

    me: BotIdentity
    breaker: CircuitBreaker
    deleting: Deleting
    reload_all: ReloadAll = cannot_reload
    features: Sequence[Feature] = ()


@dataclass(frozen=True, slots=True)
class CommandSet:
    """All commands in the order of the menus, and the buttons of commands and of tools by verb.

    `unknown` answers all other commands. `around` is what the bot can do. `edits` takes new
    wordings of facts.
    """

    listed: tuple[BotCommand, ...]
    unknown: Handler
    buttons: Mapping[str, ButtonHandler]
    edits: FactEdits
    around: Surroundings

    @property
    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by the name of their command."""
        return {command.name: command.handler for command in self.listed}

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer any command; raise `StoreError` or `TelegramError`."""
        return await self.handlers.get(asked.command, self.unknown)(asked, conversation)


def build_commands(services: Services, running: Running) -> CommandSet:
    """Return all commands, each behind the checks that it declares."""
    settings, memory, chat = services.settings, services.memory, services.chat
    sentences, access = services.sentences, services.access
    receipts = Receipts(memory.jobs, chat, sentences)
    erasing = ErasingCommands(memory, running.deleting, receipts, sentences)
    edits = FactEdits(memory, access, chat, sentences)
    ways = [way for feature in running.features for way in feature.ways]
    around = Surroundings(tuple(ways))
    others = [
        *_talk_commands(memory, access, around, sentences, running.me),
        *_memory_commands(services, edits, running.features),
        *_recall_commands(settings, memory, sentences),
        *_data_commands(memory, erasing, sentences),
        _mute_command(memory, sentences, running.features),
        _privacy_command(services, running.features),
        *_operators_commands(services, erasing, running),
        BotCommand("reload", ReloadCommand(running.reload_all, sentences).answer, "operators"),
        *(command for feature in running.features for command in feature.commands),
    ]
    listed = (*others, HelpCommand(others, running.me, access, around, sentences).command)
    arguments = CommandWords(services.operators, sentences)
    commands = tuple(access.guarded(arguments.checked(each)) for each in listed)
    buttons = {verb: act for command in commands for verb, act in command.buttons.items()}
    buttons |= {**edits.buttons, **ToolButtons(memory, sentences).handlers}
    for feature in running.features:
        buttons |= feature.buttons
    return CommandSet(commands, arguments.unknown(commands), buttons, edits, around)


def _talk_commands(
    memory: Memory, access: Access, around: Surroundings, sentences: Sentences, me: BotIdentity
) -> tuple[BotCommand, ...]:
    """Return what is about the talk itself."""
    general = GeneralCommands(me, memory, around, sentences)
    retry = RetryCommand(memory, access, sentences)
    return (
        BotCommand("start", general.start, "unlisted", general.buttons, takes=ANYTHING),
        BotCommand("ask", general.ask, "groups"),
        BotCommand("new", general.new),
        BotCommand("stop", StopCommand(sentences).answer, takes=ANYTHING),
        BotCommand("retry", retry.nothing_to_retry, buttons=retry.buttons),
    )


def _memory_commands(
    services: Services, edits: FactEdits, features: Sequence[Feature]
) -> tuple[BotCommand, ...]:
    """Return what shows and changes single memories."""
    memory, sentences, access = services.memory, services.sentences, services.access
    switches = [switch for feature in features for switch in feature.switches]
    lines = [line for feature in features for line in feature.memory_lines]
    modes = MemorySettings(memory, access, sentences, switches)
    entries = MemoryEntries(memory, sentences, switches, lines)
    memories = MemoryList(entries, MemoryDeletion(memory), edits, modes, access)
    return (
        BotCommand(
            "memory",
            memories.answer,
            buttons={MemoryList.verb: memories.press},
            words=modes.words,
            takes=ANYTHING,
            section="memory",
        ),
        BotCommand(EDITED, edits.answer, "unlisted", takes=ANYTHING),
    )


def _recall_commands(
    settings: Settings, memory: Memory, sentences: Sentences
) -> tuple[BotCommand, ...]:
    """Return what finds old messages, by words alone once a quota is used up."""
    allows = partial(Budget(settings, memory.usage).allows, quotas=memory.quotas)
    recall = RecallCommand(memory.histories, memory.off_record, allows, memory.mailbox, sentences)
    return (
        BotCommand(
            "recall",
            recall.answer,
            buttons={"recall": recall.press},
            takes=ANYTHING,
            section="memory",
        ),
        BotCommand(JUMP, recall.jump, "unlisted", takes=_MESSAGE_ID),
    )


def _data_commands(
    memory: Memory, erasing: ErasingCommands, sentences: Sentences
) -> tuple[BotCommand, ...]:
    """Return what shows or erases all that is stored of a conversation or of a person."""
    export = ExportCommand(memory.exporter, sentences)
    forgets = {"forget": erasing.forget, "delete_message": erasing.delete_message}
    return (
        BotCommand("export", export.answer, group_admins_only=True, section="data"),
        BotCommand(
            "clear",
            erasing.ask_to_clear,
            buttons={"clear": erasing.clear},
            group_admins_only=True,
            section="data",
        ),
        BotCommand("forget", erasing.ask_to_forget, buttons=forgets, section="data"),
    )


def _mute_command(memory: Memory, sentences: Sentences, features: Sequence[Feature]) -> BotCommand:
    mute = MuteCommand(memory.scopes, sentences)
    return BotCommand(
        "mute",
        mute.answer,
        "private",
        mute.buttons,
        words=("on", "off"),
        is_useful=when(lambda: any(each.says_unasked for each in features)),
    )


def _privacy_command(services: Services, features: Sequence[Feature]) -> BotCommand:
    """Return what says what is stored."""
    parts = [part for feature in features for part in feature.privacy]
    privacy = PrivacyCommand(services.settings, services.access, services.sentences, parts)
    return BotCommand(
        "privacy", privacy.answer, buttons={PrivacyCommand.verb: privacy.press}, section="data"
    )


def _operators_commands(
    services: Services, erasing: ErasingCommands, running: Running
) -> tuple[BotCommand, ...]:
    """Return what is for the operators of the bot alone."""
    settings, memory, sentences = services.settings, services.memory, services.sentences
    models = ModelsInUse(settings.openai_model, settings.fallback_model or "", running.breaker)
    stats = StatsCommands(memory, models, sentences, services.name_of)
    erases = {"admin": erasing.erase_for_operator}
    return (
        BotCommand("stats", stats.stats, "operators"),
        BotCommand("inspect", stats.inspect, "operators", takes=ANYTHING),
        BotCommand("clear_memory", erasing.ask_for_operator, "operators", erases, takes=ANYTHING),
    )
