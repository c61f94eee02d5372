"""Sends a message and waits until its turn is closed, or until the bot has learned from it."""

from typing import Any

from tests.acceptance.rig import Rig
from tests.servers.bot_api import Chat, Message, Person

_ENDS = ("learned", "learning postponed", "learning failed")


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
