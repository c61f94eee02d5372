"""Sends messages and waits for what follows; reads the requests to the model."""

from collections.abc import Sequence
from typing import Any

from tests.acceptance.rig import Rig
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.model_api import ChatRequest

_ENDS = ("learned", "learning postponed", "learning failed")


def said(request: ChatRequest) -> list[tuple[str, str]]:
    """Return role and text of each message of a request."""
    return [(message.role, message.content) for message in request.messages]


def dialogue(rig: Rig) -> list[str]:
    """Return the texts of the last request without its system message."""
    return [message.content for message in rig.requests[-1].messages[1:]]


async def say_at_once(rig: Rig, person: Person, chat: Chat, texts: Sequence[str]) -> Message:
    """Send several messages while the bot answers another; return its answer to all of them."""
    busy = f"Take your time ({len(rig.requests)})"
    gate = rig.script.hold(busy, "I did.")
    first = await rig.say_until_asked(person, chat, busy)
    taken = len(rig.bot.lines("update"))
    for text in texts:
        last = await person.say(chat, text)
    await rig.bot.wait_until(lambda: len(rig.bot.lines("update")) == taken + len(texts))
    gate.set()
    done = await chat.wait_for_reply(after=first)
    return await chat.wait_for_reply(after=max(last, done, key=lambda message: message.id))


async def ask_fully(rig: Rig, person: Person, chat: Chat, text: str, **how: Any) -> Message:
    """Send a message; return the answer when the turn is closed."""
    before = len(rig.bot.log)
    reply = await rig.ask(person, chat, text, **how)
    turn = str(rig.telegram.updates.history[-1].id)
    await rig.bot.wait_for_log("turn closed", after=before, turn=turn)
    return reply


async def ask_and_learn(rig: Rig, person: Person, chat: Chat, text: str, **how: Any) -> Message:
    """Send a message; return the answer when the bot has learned from it, or has failed to.

    The bot must have learned from all earlier messages already.
    """
    before = len(rig.bot.log)
    reply = await rig.ask(person, chat, text, **how)
    await wait_until_learned_from(rig, chat, before)
    return reply


async def wait_until_learned_from(rig: Rig, chat: Chat, after: int) -> None:
    """Wait until the log, from line `after` on, reports a round of learning in a chat."""

    def has_ended(line: dict[str, Any]) -> bool:
        is_here = str(line.get("conversation", "")).startswith(f"c:{chat.id}:")
        return is_here and line["event"] in _ENDS

    await rig.bot.wait_until(lambda: any(map(has_ended, rig.bot.log[after:])), timeout_s=90)
