"""Commands and buttons work only for the people and places that their declaration names."""

from dataclasses import dataclass, field

import pytest

from bot.commands.access import Access, Operators
from bot.commands.bot_command import Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage, Sender
from memory.erasure.confirmations import NotConfirmed
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS
from tests.quiet_chat import QuietChat
from tests.settings import Settings

HERE = Scope.of_chat(-9)
OPERATOR, GROUP_ADMIN, ANNA = 1, 2, 3
DONE = Part("Done.")


class Group(QuietChat):
    """A group with one administrator."""

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        del chat_id
        return user_id == GROUP_ADMIN


@dataclass
class Acted:
    """A command that counts how often it was carried out."""

    times: int = 0
    buttons: list[str] = field(default_factory=list)

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        del asked, conversation
        self.times += 1
        return Answer((DONE,))

    async def press(self, pressed: ButtonPress, here: Scope, rest: str) -> tuple[Part, ...]:
        del pressed, here
        self.buttons.append(rest)
        return (DONE,)


@pytest.fixture
def access(store: RedisClient, tokens: TokenCounter) -> Access:
    memory = Memory(store, 42, tokens, None, OPTIONS)
    operators = Operators(memory.store, Settings(admin_user_ids=frozenset({OPERATOR})))
    return Access(Group(), Sentences(Catalogue()), operators, memory.off_record.is_open)


async def said(command: BotCommand, person: int, *, in_group: bool) -> str:
    """Return what a guarded command answers a person."""
    chat_id, sender = (-9 if in_group else person), Sender(person, "Anna")
    asked = IncomingMessage(1, chat_id, 0, in_group, 2, 3, sender, "command", "")
    return (await command.handler(asked, HERE)).parts[0].text


async def press(command: BotCommand, person: int, *, in_group: bool) -> None:
    chat_id, sender = (-9 if in_group else person), Sender(person, "Anna")
    await command.buttons["b"](
        ButtonPress(1, "c", chat_id, 0, in_group, 2, sender, "b:x"), HERE, "x"
    )


async def test_an_operators_command_and_its_buttons_work_only_in_private_for_operators(
    access: Access,
) -> None:
    acted = Acted()
    command = access.guarded(BotCommand("stats", acted.answer, "operators", {"b": acted.press}))

    assert (await said(command, ANNA, in_group=False)).startswith("This command is for this bot's")
    assert (await said(command, OPERATOR, in_group=True)).startswith("I answer this command only")
    for person, in_group in ((ANNA, False), (ANNA, True), (OPERATOR, True)):
        with pytest.raises(NotConfirmed, match="not_yours"):
            await press(command, person, in_group=in_group)
    assert (acted.times, acted.buttons) == (0, [])

    assert await said(command, OPERATOR, in_group=False) == DONE.text
    await press(command, OPERATOR, in_group=False)
    assert (acted.times, acted.buttons) == (1, ["x"])


async def test_a_command_for_group_admins_works_in_private_for_everybody(access: Access) -> None:
    acted = Acted()
    buttons = {"b": acted.press}
    command = access.guarded(
        BotCommand("clear", acted.answer, buttons=buttons, group_admins_only=True)
    )

    assert (await said(command, ANNA, in_group=True)).startswith("Only this group's administrators")
    with pytest.raises(NotConfirmed, match="not_yours"):
        await press(command, ANNA, in_group=True)
    assert (acted.times, acted.buttons) == (0, [])

    for person, in_group in ((ANNA, False), (GROUP_ADMIN, True)):
        assert await said(command, person, in_group=in_group) == DONE.text
        await press(command, person, in_group=in_group)
    assert (acted.times, acted.buttons) == (2, ["x", "x"])
