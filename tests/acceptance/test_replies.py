"""A reply brings what it answers into the prompt, once, and nothing of it into the memory."""

import re
from typing import Any

from tests.acceptance.buttons import erase
from tests.acceptance.rig import US, Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully, dialogue
from tests.servers.bot_api import Chat, Message, Person, contents

_TIME = re.compile(r"\[today, \d\d:\d\d\] ")


async def memory_of(rig: Rig, person: Person, chat: Chat, text: str, **how: Any) -> list[str]:
    """Ask something; return the lines of its memory section without times when it is answered."""
    await ask_fully(rig, person, chat, text, **how)
    return [_TIME.sub("", line) for line in rig.requests[-1].memory.splitlines()]


async def test_a_reply_in_private_shows_what_it_answers_and_erases_with_it(rig: Rig) -> None:
    rig.script.on("What colour", "Aurora is **blue**, like the sea.")
    anna, chat = await rig.start_with_anna(recall_k=0, openai_embedding_model="off")
    answer = await rig.ask(anna, chat, "What colour is Aurora?")
    invited = await rig.ask(anna, chat, "/start invite_42")
    assert invited.text == (await rig.ask(anna, chat, "/start")).text
    await rig.ask(anna, chat, "/new")

    quoted = await memory_of(rig, anna, chat, "Which sea?", reply_to=answer, quote="like the sea")
    assert quoted == [
        "The question: Anna: What colour is Aurora?",
        "The message replied to: You (assistant): Aurora is **blue**, ⟦like the sea⟧.",
    ]
    assert rig.requests[-1].asked == "Which sea?"
    await rig.ask(anna, chat, "Thank you")
    assert dialogue(rig) == ["Which sea?", "All right.", "Thank you"]
    mine = next(message for message in chat.messages if message.text == "Which sea?")
    hint = "The message replied to, which stands above: Anna: Which sea?"
    assert await memory_of(rig, anna, chat, "I meant it", reply_to=mine) == [hint]

    question = await ask_fully(rig, anna, chat, "/forget", reply_to=answer)
    await erase(rig, anna, question, "forget.message_done", messages=1, vectors=0)
    asked = next(message for message in chat.messages if message.text.startswith("What colour"))
    question = await ask_fully(rig, anna, chat, "/forget", reply_to=asked)
    await erase(rig, anna, question, "forget.message_done", messages=1, vectors=0)
    pointed_at = await memory_of(rig, anna, chat, "And this?", reply_to=answer)
    text = "Aurora is blue, like the sea. (partly others' words)"
    assert pointed_at == [f"The message replied to: You (assistant): {text}"]
    assert b"like the sea" not in await rig.stored()


async def share(person: Person, chat: Chat, content: dict[str, object]) -> Message:
    sent = await person.share(chat, content)
    return await chat.wait_for_reply(after=sent)


async def test_words_of_others_are_used_once_and_other_content_is_read_or_refused(rig: Rig) -> None:
    await rig.start()
    (anna, annas), ben = rig.anna(), rig.ben()[0]
    group = rig.telegram.group("Club", [anna, ben])
    bens = await ben.say(group, "I live in Oslo, near the harbour")
    line = "The message replied to: Ben: I live in Oslo, near the harbour (partly others' words)"
    for text in (f"{US} where is he?", "/ask"):
        assert await memory_of(rig, anna, group, text, reply_to=bens) == [line]
    shown = await memory_of(rig, anna, annas, "Where is he?", reply_to=bens, quote="in Oslo")
    assert shown == ["The message replied to: Ben: ⟦in Oslo⟧ (partly others' words)"]
    assert re.search(b"Oslo|/ask", await rig.stored()) is None

    for content, words in (
        (contents.rich({"type": "paragraph", "text": ["Our ", {"text": "boat"}]}), "Our boat"),
        (contents.location(48.1, 11.5), "📍 48.1000, 11.5000"),
    ):
        assert (await share(anna, annas, content)).text == "All right."
        assert rig.requests[-1].asked == words
    refused = await share(anna, annas, contents.contact("Carla", "+49 1"))
    assert refused.text == sentence("unsupported.contact")
    assert b"Carla" not in await rig.stored()
