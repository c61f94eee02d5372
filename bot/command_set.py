"""Builds the commands of the core and of all features; used by the composition root alone.

Menus, /help and the checks follow from the list.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.commands.arguments import CommandWords
from bot.commands.bot_command import Answer, BotCommand, ButtonHandler, Handler
from bot.commands.erasing import Deleting, ErasingCommands, Receipts
from bot.commands.fact_edits import FactEdits
from bot.commands.general import GeneralCommands
from bot.commands.immediate import stop_command
from bot.commands.retry import RetryCommand
from bot.feature import Services
from bot.runtime.reloading import ReloadAll, ReloadCommand, cannot_reload
from bot.telegram.updates import IncomingMessage
from bot.turn.tool_questions import ToolButtons
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class CommandSet:
    """All commands, and all buttons by verb."""

    listed: tuple[BotCommand, ...]  # in the order of the table `commands`
    handlers: Mapping[str, Handler]  # by the name of their command
    unknown: Handler  # answers all other commands
    buttons: Mapping[str, ButtonHandler]
    edits: FactEdits  # takes new wordings of facts
    ways: Sequence[str]  # what people can send beside text

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer any command; raise `StoreError` or `TelegramError`."""
        return await self.handlers.get(asked.command, self.unknown)(asked, conversation)


def build_commands(
    services: Services, deleting: Deleting, reload_all: ReloadAll = cannot_reload
) -> CommandSet:
    """Return all commands, each behind the checks that it declares."""
    memory, chat = services.memory, services.chat
    sentences, access = services.sentences, services.access
    features = services.features
    ways = [way for feature in features for way in feature.ways]
    erasing = ErasingCommands(memory, deleting, Receipts(memory.jobs, chat, sentences), sentences)
    edits = FactEdits(memory, access, chat, sentences)
    listed: list[BotCommand] = []
    listed += [
        *GeneralCommands(services.me(), memory, access, ways, sentences, listed).commands,
        stop_command(sentences),
        RetryCommand(memory, access, sentences).command,
        edits.command,
        *erasing.commands,
        erasing.for_operators,
        ReloadCommand(reload_all, sentences).command,
        *(command for feature in features for command in feature.commands),
    ]
    order = {key: place for place, key in enumerate((*sentences.keys(), "commands.help"))}
    listed.sort(key=lambda each: order.get(f"commands.{each.name}", 0))
    words = CommandWords(services.operators, sentences)
    commands = tuple(access.guarded(words.checked(each)) for each in listed)
    buttons = {verb: act for command in commands for verb, act in command.buttons.items()}
    buttons |= ToolButtons(memory, sentences).handlers
    for feature in features:
        buttons |= feature.buttons
    handlers = {command.name: command.handler for command in commands}
    return CommandSet(commands, handlers, words.unknown(commands), buttons, edits, ways)
