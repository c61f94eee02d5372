"""Commands and buttons work only for whom their declaration names; a press waits for its turn."""

import asyncio
from dataclasses import dataclass, field

import pytest

from bot.commands.access import Access, Operators
from bot.commands.bot_command import Answer, BotCommand
from bot.commands.immediate import Buttons
from bot.reply.parts import Button, Part, with_buttons
from bot.telegram.chat import Destination
from bot.telegram.errors import ChatMigrated, FloodWait
from bot.telegram.updates import ButtonPress, IncomingMessage, Sender
from bot.turn.outbox import Outbox
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES
from tests.memory.turns import put, take
from tests.quiet_chat import QuietChat
from tests.settings import Settings

HERE = Scope.of_chat(-9)
OPERATOR, GROUP_ADMIN, ANNA = 1, 2, 3
DONE = Part("Done.")


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
def access(memory: Memory) -> Access:
    operators = Operators(memory.store, Settings(admin_user_ids=frozenset({OPERATOR})))
    chat = QuietChat()
    chat.admins.add(GROUP_ADMIN)
    return Access(chat, SENTENCES, operators, memory.store)


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


ASKED = with_buttons((Part("Shall I?"),), Button("Yes", "yes:abc"))


class Pressing(QuietChat):
    """A chat with a button that finds what it is about `there_after` some tries."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.tried, self.tries, self.there_after = asyncio.Event(), 0, 99
        self._memory = memory
        self._buttons = Buttons({"yes": self._act}, memory, self, SENTENCES)

    async def _act(self, _: ButtonPress, __: Scope, ___: str) -> tuple[Part, ...]:
        self.tries += 1
        self.tried.set()
        self._may_fail("yes")
        if self.tries <= self.there_after:
            raise NotConfirmed("unknown")
        return (DONE,)

    async def reply(self, *parts: Part) -> None:
        await put(self._memory, 1, HERE)
        turn, outbox = await take(self._memory, HERE), Outbox(Destination(-9), parts)
        await self._memory.turns.write_outbox(turn, outbox.to_bytes())

    async def shown(self, update_id: int = 5, data: str = "yes:abc") -> list[Part]:
        is_group = HERE.chat_id < 0
        pressed = ButtonPress(update_id, "c", -9, 0, is_group, 7, Sender(ANNA, "Anna"), data)
        await self._buttons.press(pressed)
        return [part for _, _, part in self.edited]


@pytest.fixture
def chat(memory: Memory) -> Pressing:
    return Pressing(memory)


async def test_a_press_before_the_commit_is_answered_after_it(chat: Pressing) -> None:
    await chat.reply(*ASKED)
    shown = asyncio.create_task(chat.shown())
    await chat.tried.wait()
    assert chat.edited == []
    chat.there_after = 0
    assert await shown == [DONE]


async def test_in_a_group_that_moved_a_press_is_answered_in_the_new_one(chat: Pressing) -> None:
    """The old messages cannot be changed, and a question for words cannot be sent there."""
    chat.there_after = 0
    chat.fails["edit"] = ChatMigrated(-1009)
    assert await chat.shown() == []
    chat.fails |= {"edit": ChatMigrated(-1009), "yes": ChatMigrated(-1009)}
    assert await chat.shown() == []
    [expired] = SENTENCES.say("en", "clear.expired")
    assert chat.sent == [(Destination(-1009), DONE), (Destination(-1009), expired)]


async def test_what_was_stored_while_the_press_looked_is_found(chat: Pressing) -> None:
    chat.there_after = 1
    assert await chat.shown() == [DONE]


async def test_a_press_does_not_come_again_if_the_turn_has_no_worker_any_more(
    chat: Pressing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.commands.immediate._PAUSE_S", 0)
    await chat.reply(*ASKED)
    assert await chat.shown() == []
    chat.fails["yes"] = FloodWait(600)  # nor if its chat is closed for long
    assert await chat.shown(6) == []
    assert chat.button_answers == [SENTENCES.say("en", "clear.not_yet")[0].text] * 2


async def test_a_button_of_a_newer_release_stays_for_a_process_that_knows_it(
    chat: Pressing,
) -> None:
    assert await chat.shown(data="of_tomorrow:abc") == []
    assert chat.button_answers == [SENTENCES.say("en", "clear.expired")[0].text]


@pytest.mark.parametrize("data", ["yes:abc", "cancel:abc"])
async def test_presses_of_one_member_edit_a_group_no_more_than_four_times_in_half_a_minute(
    chat: Pressing, data: str
) -> None:
    chat.there_after = 0
    for update_id in range(1, 9):
        await chat.shown(update_id, data)
    assert len(chat.edited) == 4
    assert chat.button_answers[4:] == [SENTENCES.say("en", "quota.pressed")[0].text] * 4


@pytest.mark.parametrize("text", ['"yes:abc"', "yes:abc", r"\"yes:abc\""])
async def test_words_of_a_reply_are_no_button(chat: Pressing, text: str) -> None:
    await chat.reply(Part(text))
    assert (await chat.shown(), chat.tries) == ([*SENTENCES.say("en", "clear.expired")], 2)
