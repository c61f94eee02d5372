"""A button whose message cannot be changed now, because Telegram has banned the chat."""

from bot.commands.immediate import Buttons
from bot.reply.parts import Part, Parts
from bot.telegram.telegram_chat import TelegramChat
from bot.telegram.updates import ButtonPress, Sender
from memory.memory import Memory
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES
from tests.bot.telegram.scripted_api import DONE, ScriptedApi, refusal

ANN = Sender(7, "Ann")
PRESSED = ButtonPress(1, "c1", 7, 0, False, 9, ANN, "turn:2")  # noqa: FBT003 - as Telegram has it


async def test_a_ban_is_said_on_top_of_the_chat_and_the_next_press_shows_what_was_done(
    api: ScriptedApi, chat: TelegramChat, memory: Memory
) -> None:
    async def turn(_: ButtonPress, __: Scope, rest: str) -> Parts:
        return (Part(f"page {rest}"),)

    buttons = Buttons({"turn": turn}, memory, chat, SENTENCES)
    api.script(refusal(429, "Too Many Requests", retry_after=17), DONE, DONE, refusal(400, "no"))
    for _ in range(2):
        await buttons.press(PRESSED)
    said = [call.parameters.get("text") for call in api.calls]
    not_yet = "This isn't ready yet. Please press the button again in a moment."
    assert said == ["page 2", not_yet, "page 2", None]
