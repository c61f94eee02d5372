"""/help and Telegram's menus list the commands that the bot answers, each where it works."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.assistant import build_commands
from bot.commands.bot_command import BotCommand
from bot.commands.command_set import CommandSet
from bot.commands.general import menus
from bot.features import open_features
from bot.telegram.bot_api import BotIdentity
from bot.telegram.updates import IncomingMessage, Sender
from memory.behaviors.context import CallContext
from memory.memory import Memory
from memory.store.keys import Scope
from tests.acceptance.sentences import IN_GROUPS, IN_PRIVATE, OF_OPERATORS
from tests.bot.features.services import SENTENCES, services_of
from tests.settings import Settings

OPERATOR, ANNA = 1, 7
ME = BotIdentity(42, "ricordo_bot", "Ricordo", can_read_all_group_messages=False)
UNHEARD = "A plain mention may not reach me here. A reply or /ask@ricordo_bot always does."
PRIVATE, GROUP, OPERATORS = {*IN_PRIVATE}, {*IN_GROUPS}, {*OF_OPERATORS}


async def _deleting(_: CallContext) -> None:
    return None


@pytest.fixture
async def commands(memory: Memory) -> CommandSet:
    services = services_of(memory, Settings(admin_user_ids=str(OPERATOR)))
    services = replace(services, me=lambda: ME)
    await open_features(services)
    return build_commands(services, _deleting)


async def help_of(
    listed: Sequence[BotCommand], person: int, *, is_group: bool, name: str = "help"
) -> str:
    """Return what /help or /start answers; `listed` are all commands."""
    (command,) = [each for each in listed if each.name == name]
    sender = Sender(person, "Anna")
    asked = IncomingMessage(1, 7, 0, is_group, 11, 1_000, sender, "command", "", name)
    answer = await command.handler(asked, Scope.of_chat(7))
    return answer.parts[0].text


async def test_start_says_in_a_group_with_privacy_mode_what_always_reaches_the_bot(
    commands: CommandSet,
) -> None:
    assert UNHEARD in await help_of(commands.listed, ANNA, is_group=True, name="start")


def test_every_command_that_people_should_know_is_listed_somewhere(commands: CommandSet) -> None:
    names = {each.name for each in commands.listed}
    assert names == PRIVATE | GROUP | OPERATORS | {"start", "edited", "jump"}


@pytest.mark.parametrize(
    ("person", "place", "listed"),
    [
        (ANNA, "private", PRIVATE - {"back"}),
        (ANNA, "group", GROUP),
        (OPERATOR, "private", PRIVATE - {"back"} | OPERATORS),
        (OPERATOR, "group", GROUP),
    ],
)
async def test_help_lists_the_commands_that_apply_in_a_place_and_to_a_person(
    commands: CommandSet, person: int, place: str, listed: set[str]
) -> None:
    text = await help_of(commands.listed, person, is_group=place == "group")
    lines = [line.partition(" – ") for line in text.splitlines() if " – " in line]
    assert {name.rpartition("/")[2] for name, _, _ in lines} == listed
    assert (UNHEARD in text) == (place == "group")
    for name, _, does in lines:
        assert does == SENTENCES.text("en", f"commands.{name.rpartition('/')[2]}")


async def test_help_names_no_way_to_write_where_text_is_the_only_one(memory: Memory) -> None:
    services = replace(services_of(memory), me=lambda: ME)  # its features are not opened
    listed = build_commands(services, _deleting).listed
    assert (await help_of(listed, ANNA, is_group=False)).startswith("Just talk. Say “remind")


def test_menus_list_the_same_commands(commands: CommandSet) -> None:
    english = {
        menu.scope: {name for name, _ in menu.commands}
        for menu in menus(SENTENCES, commands.listed, [OPERATOR])
        if not menu.language
    }
    assert english == {"private": PRIVATE, "groups": GROUP, OPERATOR: PRIVATE | OPERATORS}


def test_help_lists_itself_last(commands: CommandSet) -> None:
    command = commands.listed[-1]
    assert (command.name, command.audience) == ("help", "everyone")
