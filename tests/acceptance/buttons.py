"""Pressing buttons and waiting for what comes of it."""

from typing import Any

from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Chat, Message, Person

ERASE = "Erase"
KEEP = "Keep everything"


async def ask_first(rig: Rig, person: Person, chat: Chat, command: str, **how: Any) -> Message:
    """Give a command that must be confirmed; return the bot's question, its turn being closed."""
    said = await person.say(chat, command, **how)
    turn = str(rig.telegram.updates.history[-1].id)
    question = await chat.wait_for_reply(after=said)

    def is_closed() -> bool:
        closed = (line for line in rig.bot.log if line["event"] == "turn closed")
        return any(line["turn"] == turn for line in closed)

    await rig.bot.wait_until(is_closed)
    return question


async def press(rig: Rig, person: Person, message: Message, button: str) -> str:
    """Press a button; return what pops up over it, usually nothing."""
    pressed = await person.press(message, button)
    await rig.telegram.wait_for(lambda: pressed.answer is not None)
    return pressed.answer or ""


async def shown(rig: Rig, message: Message, text: str) -> None:
    """Wait until the bot has changed a message of its own into this text."""

    def is_shown() -> bool:
        now = message.chat.message(message.id)
        return now is not None and now.text == text

    try:
        await rig.telegram.wait_for(is_shown)
    except TimeoutError:
        raise TimeoutError(f"not shown: {text}\n{message.chat.transcript()}") from None


async def erase(
    rig: Rig, person: Person, question: Message, receipt: str, **counts: object
) -> None:
    """Confirm an erasure and wait for the receipt, with exactly these counts."""
    assert await press(rig, person, question, ERASE) == ""
    await shown(rig, question, sentence(receipt, **{"learned": 0, **counts}))
