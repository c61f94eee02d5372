"""Presses buttons and waits for the result."""

from typing import Any

from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully
from tests.servers.bot_api import Chat, Message, Person

ERASE = "Erase"
CANCEL = "Keep everything"


async def press(rig: Rig, person: Person, message: Message, button: str) -> str:
    """Press a button; return the text shown on top of the chat, usually none."""
    pressed = await person.press(message, button)
    await rig.telegram.wait_for(lambda: pressed.answer is not None)
    return pressed.answer or ""


async def shown(rig: Rig, message: Message, text: str) -> None:
    """Wait until the bot has changed its message to this text."""
    try:
        await rig.telegram.wait_for(lambda: message.now.text == text)
    except TimeoutError:
        raise TimeoutError(f"not shown: {text}\n{message.chat.transcript()}") from None


async def erase(
    rig: Rig, person: Person, question: Message, receipt: str, *, by: Any = ERASE, **counts: Any
) -> None:
    """Confirm an erasure and wait for the receipt with exactly these counts."""
    assert await press(rig, person, question, by) == ""
    await shown(rig, question, sentence(receipt, **{"learned": 0, **counts}))


async def erase_now(rig: Rig, person: Person, chat: Chat, command: str, **how: Any) -> None:
    """Send a command that erases, confirm it, and wait until it is done."""
    question = await ask_fully(rig, person, chat, command, **how)
    assert await press(rig, person, question, ERASE) == ""
    passing = (question.text, sentence("forget.started"))
    await rig.telegram.wait_for(lambda: question.now.text not in passing)


def button(message: Message, begins: str) -> str:
    """Return the whole text of a button."""
    return next(b.text for row in message.now.keyboard for b in row if b.text.startswith(begins))


async def press_now(rig: Rig, person: Person, message: Message, text: str) -> str:
    """Press a button of the current version of a message."""
    return await press(rig, person, message.now, button(message, text))


def asks_to_delete(message: Message) -> bool:
    """Return whether a list now asks what to do with one entry."""
    return message.now.text.startswith((sentence("lists.delete_ask"), sentence("lists.change_ask")))


async def delete_now(rig: Rig, person: Person, shows: Message, cross: str) -> None:
    """Press an entry's button, and confirm the question."""
    assert await press_now(rig, person, shows, cross) == ""
    await rig.telegram.wait_for(lambda: asks_to_delete(shows))
    assert await press_now(rig, person, shows, "Delete") == ""
    await rig.telegram.wait_for(lambda: not asks_to_delete(shows))


async def ask_for_wording(rig: Rig, person: Person, shows: Message, entry: str) -> Message:
    """Press the button of an entry, then the one that edits it; return the bot's question."""
    await press_now(rig, person, shows, entry)
    await rig.telegram.wait_for(lambda: asks_to_delete(shows))
    before = shows.chat.messages[-1]
    await press_now(rig, person, shows, "Edit")
    return await shows.chat.wait_for_reply(after=before)
