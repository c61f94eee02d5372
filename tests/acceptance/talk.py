"""Short functions to send messages and to read the requests to the model."""

from collections.abc import Sequence

from tests.acceptance.rig import Rig
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.model_api import ChatRequest


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
    taken = taken_in(rig)
    for text in texts:
        last = await person.say(chat, text)
    await rig.bot.wait_until(lambda: taken_in(rig) == taken + len(texts))
    gate.set()
    done = await chat.wait_for_reply(after=first)
    return await chat.wait_for_reply(after=max(last, done, key=lambda message: message.id))


def taken_in(rig: Rig) -> int:
    """Return how many messages this process has accepted."""
    return sum(line["event"] == "update" for line in rig.bot.log)
