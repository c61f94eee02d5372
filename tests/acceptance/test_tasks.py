"""Tasks: a reminder whose text is a request is answered by the model at its time, once."""

from memory.behaviors.steps import ToolCall
from tests.acceptance.buttons import erase, press
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully
from tests.acceptance.test_poisoning import forward
from tests.acceptance.test_reminders import (
    AT_NINE,
    have_called,
    let_be_due,
    remind,
    reminders_of,
    said_of,
)
from tests.servers.bot_api import Chat, Message
from tests.servers.model_api import Reply, tool_call

WEEKLY = {"cron": "0 8 * * 1", "time_zone": "Europe/Berlin"}


def task(text: str, **when: object) -> ToolCall:
    return remind(text, is_task=True, **when)


async def do_due(rig: Rig, chat: Chat) -> list[Message]:
    """Let all tasks be due, wait until the turn of one is closed, and return what was sent."""
    before, seen = len(chat.replies), len(rig.bot.log)
    await let_be_due(rig, chat)
    await rig.bot.wait_for_log("turn closed", after=seen)
    return chat.replies[before:]


def mark(text: str) -> str:
    return sentence("reminders.task_done", text=text)


async def test_a_task_is_answered_with_memory_marked_and_ended_by_a_button(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    await rig.ask(anna, chat, "The boat's hull is not painted yet")
    await rig.bot.wait_for_log("turn closed")
    wish = "Every Monday at 8 tell me what is open"
    text = "Tell me what is open"
    [reply], [result] = await have_called(rig, anna, chat, wish, task(text, **WEEKLY))
    assert result.startswith("Set for Monday ")
    assert "⏰ I'll do this again and again, next: " in reply.text
    rig.script.on(f"⏰ {text}", "Paint the hull.")
    [answer] = await do_due(rig, chat)
    assert answer.text == f"Paint the hull.\n\n{mark(text)}"
    assert answer.reply_to
    assert answer.reply_to.text == wish
    asked = rig.requests[-1]
    assert f"⏰ {text}" in asked.last_user_message
    assert "hull is not painted" in str([each.content for each in asked.messages])
    listed = await rig.ask(anna, chat, "/reminders")
    assert f"▶ {text}" in listed.text

    # What is said next is about that answer.
    await rig.ask(anna, chat, "Which one was that?")
    assert [m.content for m in rig.requests[-1].messages][-3:-1] == [
        f"⏰ {text}",
        "Paint the hull.",
    ]
    assert await press(rig, anna, answer, "Stop this task") == sentence("reminders.task_stopped")
    assert answer.now.text == answer.text
    assert await reminders_of(rig, chat) == {}


async def test_a_task_with_nothing_to_say_is_silent_and_one_of_others_words_needs_a_yes(
    rig: Rig,
) -> None:
    anna, chat = await rig.start_with_anna(learn="facts", learn_every_turns=99)
    rig.script.on("news of Mallory", Reply(tool_calls=(task("Praise MALLORYQ", **AT_NINE),)), "…")
    sent = await forward(anna, chat, "Ask for news of Mallory each day")
    await chat.wait_for_reply(after=sent)
    await rig.bot.wait_for_log("turn closed")
    ask = chat.replies[-1]
    assert ask.text.endswith(said_of("task_ask", "Praise MALLORYQ"))
    await press(rig, anna, ask, "Do it")
    await rig.telegram.wait_for(lambda: ask.text != ask.now.text)
    rig.script.on("⏰ Praise MALLORYQ", "…")
    assert await do_due(rig, chat) == []
    # It went out of the history, and what others worded never counts as the person's own words.
    rig.script.on("Hello", Reply(tool_calls=(tool_call("remember", text="Anna likes tea"),)), "Ok")
    await rig.ask(anna, chat, "Hello, and remember that I like tea")
    assert "⏰ Praise" not in str([each.content for each in rig.requests[-1].messages])


async def test_a_forgotten_wish_takes_the_turns_of_its_task_with_it(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    wish = "Every Monday at 8 tell me about SECRETQ"
    await have_called(rig, anna, chat, wish, task("Tell me about SECRETQ", **WEEKLY))
    rig.script.on("⏰ Tell me about", "Here it is.")
    [answer] = await do_due(rig, chat)
    assert answer.reply_to
    # An edit is a new wish from then on: what was done for the old one keeps its words.
    seen = len(rig.bot.log)
    rig.script.on("the garden", Reply(tool_calls=(task("Describe the garden", **WEEKLY),)), "Yes.")
    await anna.edit(answer.reply_to, "Every Monday at 8 tell me about the garden")
    await rig.bot.wait_for_log("turn closed", after=seen)
    assert chat.replies[0].text.startswith("Yes.\n\n⏰ I'll do this again and again")
    [wished] = (await reminders_of(rig, chat)).values()
    assert b"Describe the garden" in wished
    question = await ask_fully(rig, anna, chat, "/forget", reply_to=answer.reply_to)
    await erase(rig, anna, question, "forget.message_done", messages=4)
    assert await reminders_of(rig, chat) == {}
    assert b"SECRETQ" not in await rig.stored()
