"""Commands do what they say and never reach the model (A21)."""

from datetime import UTC, datetime
from functools import partial

import pytest

from tests.acceptance.buttons import press
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import (
    IN_GROUPS,
    IN_PRIVATE,
    OF_OPERATORS,
    greeting_in,
    help_in_private,
    sentence,
    sentence_in,
)
from tests.acceptance.talk import dialogue
from tests.servers.bot_api import Chat, Person


async def test_a21_commands_are_answered_from_the_catalogue(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    for command, expected in {
        "/start": greeting_in("en", "Anna"),
        "/help": help_in_private(),
        "/help@ricordo_bot": help_in_private(),
        "/new": sentence("new.done"),
        "/memory": sentence("memory.empty", "memory.is_on"),
        "/privacy": sentence("privacy.short", ttl_days=365),
        "/ask": sentence("ask.empty"),
        "/no_such_command": sentence("error.unknown_command"),
    }.items():
        reply = await rig.ask(anna, chat, command)
        assert reply.text == expected
    assert (rig.requests, rig.model.log.embedded) == ([], [])
    await rig.ask(anna, chat, "/ask Are you there?")
    assert dialogue(rig) == ["Are you there?"]


async def test_everybody_gets_sentences_and_menus_in_their_own_language(rig: Rig) -> None:
    admin, admins = rig.person(2001, "Sam", "de")
    person, chat = rig.person(2002, "Sam", "fa")
    group = rig.telegram.group("Club", [person])
    await rig.start(admin_user_ids=admin.id, transcription_model="off", menus="on")
    for somebody, with_bot, language in ((admin, admins, "de"), (person, chat, "fa")):
        reply = await rig.ask(somebody, with_bot, "/start")
        expected = greeting_in(language, "Sam", "link", "photo", "file")  # it does not listen
        assert reply.text == expected
        question = await rig.ask(somebody, with_bot, "/forget")
        assert question.text == sentence_in(language, "forget.ask")
        wanted = [sentence_in(language, f"buttons.{name}") for name in ("erase", "cancel")]
        assert [button.text for button in question.keyboard[0]] == wanted
        refused = await rig.send(somebody, with_bot, "voice")
        assert refused.text == sentence_in(language, "voice.off")

    def menu(somebody: Person, where: Chat) -> dict[str, str]:
        return {line.command: line.description for line in rig.telegram.menu(somebody, where)}

    def in_language(language: str, *names: str) -> dict[str, str]:
        return {name: sentence_in(language, f"commands.{name}") for name in names}

    operators = in_language("de", *IN_PRIVATE, *OF_OPERATORS)
    await rig.telegram.wait_for(lambda: menu(admin, admins) == operators)
    assert menu(person, chat) == in_language("fa", *IN_PRIVATE)
    assert menu(person, group) == in_language("fa", *IN_GROUPS)


async def test_new_empties_the_window_and_memory_still_counts_everything(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna(window_messages=10)
    first = await rig.ask(anna, chat, "My boat is called Aurora")
    await rig.wait_until_learned(2)
    await rig.ask(anna, chat, "/new")
    await rig.ask(anna, chat, "Something else entirely")
    assert dialogue(rig) == ["Something else entirely"]
    await rig.ask(anna, chat, "What is my boat called?")
    assert "My boat is called Aurora" in rig.requests[-1].memory
    await rig.wait_until_learned(6)
    summary = await rig.ask(anna, chat, "/memory")
    since = datetime.fromtimestamp(first.sent_at, UTC).strftime("%-d %B %Y")
    told = sentence("memory.summary", messages=6, since=since)
    assert summary.text.splitlines()[-1].startswith(f"{told} {sentence('memory.is_on')}")


def is_last(chat: Chat, text: str) -> bool:
    return chat.replies[-1].text == text


@pytest.mark.either_way
async def test_the_buttons_below_the_greeting_ask_for_what_they_name(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    start = await rig.ask(anna, chat, "/start")
    assert start.labels == ["What can you do?", "What do you know about me?", "Privacy"]
    for button, answer in (
        ("What can you do?", help_in_private()),
        ("Privacy", sentence("privacy.short", ttl_days=365)),
    ):
        await press(rig, anna, start, button)
        await press(rig, anna, start, button)
        await rig.telegram.wait_for(partial(is_last, chat, answer))
    assert start.text == greeting_in("en", "Anna")
