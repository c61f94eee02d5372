"""People correct themselves, or want another answer: only the last words count."""

import pytest

from tests.acceptance.buttons import shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully, dialogue
from tests.acceptance.test_delivery import closed
from tests.servers.bot_api import Chat

LONG = " ".join(f"Word {number} of many." for number in range(400))


def replies(chat: Chat) -> list[str]:
    return [message.text for message in chat.replies]


async def stored(rig: Rig) -> str:
    return (await rig.stored()).decode(errors="replace")


@pytest.mark.either_way
async def test_the_last_words_are_answered_whenever_they_are_corrected(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()

    # The running question: the run is dropped, the new words are answered once.
    gate = rig.script.hold("Who built zanzibar?", "Somebody.")
    rig.script.on("Who built Venice?", "The Venetians.")
    running = await rig.say_until_asked(anna, chat, "Who built zanzibar?")
    await anna.edit(running, "Who built Venice?")
    await chat.wait_for_reply(after=running)
    await closed(rig, 1)
    gate.set()
    assert replies(chat) == ["The Venetians."]

    # The answered question: its answer is edited in place, parts too many are deleted.
    rig.script.on("Tell me about quokkas", LONG)
    rig.script.on("Tell me about cats", "Cats sleep.")
    asked = await anna.say(chat, "Tell me about quokkas")
    await closed(rig, 2)
    first, *more = chat.replies[1:]
    assert len(more) > 0
    await anna.edit(asked, "Tell me about cats")
    await shown(rig, first, "Cats sleep.")
    await closed(rig, 3)
    assert replies(chat) == ["The Venetians.", "Cats sleep."]
    await anna.edit(asked, "Tell me about cats")
    await anna.edit(asked, "/clear")

    # An older message: no new answer, and the one that repeats the former words is not shown again.
    await ask_fully(rig, anna, chat, "Thank you")
    await anna.edit(asked, "Tell me about dogs")
    await closed(rig, 6)
    calls = len(rig.requests)
    await ask_fully(rig, anna, chat, "Goodbye")
    assert dialogue(rig) == [
        "Who built Venice?",
        "The Venetians.",
        "Tell me about dogs",
        "[removed from memory]",
        "Thank you",
        replies(chat)[2],
        "Goodbye",
    ]
    assert (len(rig.requests), len(chat.replies)) == (calls + 1, 4)
    everything = await stored(rig)
    for old in ("zanzibar", "quokka", "Word 1 of many", "about cats"):
        assert old not in everything

    # The answer to new words is stopped before its first one.
    asked = await anna.say(chat, "Where do eels live?")
    answer = await chat.wait_for_reply(after=asked)
    rig.script.on("Hello", "Hello.")
    rig.script.hold("Where do otters live?", "In rivers.")
    await anna.edit(asked, "Where do otters live?")
    await rig.wait_until_asked("Where do otters live?")
    await anna.say(chat, "/stop")
    await shown(rig, answer, sentence("stop.before"))
    await ask_fully(rig, anna, chat, "Hello")
    assert rig.requests[-1].asked.endswith("Where do otters live?\n\nHello")
    assert "eels" not in await stored(rig)
