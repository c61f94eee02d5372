"""What an operator adds works as ours does, and a mistake in it says what to do."""

import re
from pathlib import Path

from tests.acceptance.bot_process import run_command
from tests.acceptance.buttons import press_now, shown
from tests.acceptance.memory_model import main_requests
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully
from tests.acceptance.test_starting import refusal_of
from tests.acceptance.test_voice import spoken
from tests.servers.bot_api import Chat, Person
from tests.servers.model_api import Reply, tool_call

HERE = "tests.acceptance.greeting_feature"


async def test_a_feature_of_the_operator_adds_a_command_a_step_a_text_and_a_tool(rig: Rig) -> None:
    await rig.start(features=f"{HERE}:feature")
    (anna, chat), script = rig.anna(), rig.script
    script.on("Greet", Reply(tool_calls=(tool_call("bow", to="Ben"),)), "I bowed.")
    assert (await rig.ask(anna, chat, "/hello")).text == "Hello, Anna!"
    assert (await rig.ask(anna, chat, "Greet Ben, please.")).text == "I bowed."
    first, last = rig.requests[-2:]
    assert "They wrote 1 message." in str(first.messages)
    assert "bowed to Ben" in str(last.messages)
    assert "/hello" in (await rig.ask(anna, chat, "/help")).text
    voice = await anna.send(chat, "voice", spoken("What are your opening hours?"))
    assert "Open at nine." in (await chat.wait_for_reply(after=voice)).text


async def test_a_mistake_in_a_feature_ends_the_start_with_what_to_do(rig: Rig) -> None:
    refused = await refusal_of(rig.another_bot(features=f"{HERE}:taken"))
    assert refused["detail"] == "FEATURES: two commands have the name export"


OUTSIDE = """
from typing import Literal
from pydantic import Field
from bot.probe import Probe, Row
from config.settings import Settings
from tests.acceptance.greeting_feature import *

class SETTINGS(Settings):
    greets: Literal["on", "off"] = Field(default="off", description="whether it greets")

async def greets(settings):
    yield Row("Greetings", "ok", f"turned {settings.greets}")

PROBES = (Probe("Greetings", greets),)

def made(services):
    is_on = services.own(SETTINGS).greets == "on"
    return feature(services) if is_on else Feature(name="greeting")
"""


async def test_a_feature_outside_the_repository_has_settings_and_rows_of_check_as_ours_have(
    rig: Rig, tmp_path: Path
) -> None:
    (tmp_path / "outside.py").write_text(OUTSIDE)
    rig.environment |= {"PWD": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    (anna, chat), (env_file, features) = rig.anna(), (tmp_path / ".env", "outside:made")
    env_file.write_text("GREETS=maybe")
    for command in ((), ("check",)):
        status, said = await run_command(rig.environment | {"FEATURES": features}, *command)
        assert (status, said) == (1, "GREETS takes `on`, `off`\n")
    env_file.write_text("GREETS=on")
    _, said = await run_command(rig.environment | {"FEATURES": features}, "check")
    assert re.search(r"^ok +Greetings +turned on$", said, re.MULTILINE)
    rig.model.log.calls.clear()  # `check` also asks for what a server may refuse
    await rig.start(features=features)
    assert (await rig.ask(anna, chat, "/hello")).text == "Hello, Anna!"


PARTS = "tests.acceptance.operator_parts"


async def test_a_behavior_is_attached_to_one_conversation_while_the_bot_runs(rig: Rig) -> None:
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    group = rig.telegram.group("Crew", [anna, ben], admins=[ben])
    await rig.start(learn="off", behaviors=f"{PARTS}:Harbour@off")

    async def has_tool(person: Person, chat: Chat, text: str = "Hello") -> bool:
        await rig.ask(person, chat, text)
        return "book_berth" in {tool.name for tool in main_requests(rig)[-1].tools}

    is_off = sentence("attached.shown", on="–", off="harbour")
    is_on = sentence("attached.shown", on="harbour", off="–")
    assert not await has_tool(anna, annas)
    listed = await ask_fully(rig, anna, annas, "/behaviors")
    assert listed.text == is_off
    await press_now(rig, anna, listed, "Turn on: harbour")
    await shown(rig, listed, is_on)
    assert await has_tool(anna, annas)
    assert not await has_tool(ben, bens)
    rig.script.on("Book", Reply(tool_calls=(tool_call("book_berth", ship="Aurora"),)), "Booked.")
    assert (await rig.ask(anna, annas, "Book a berth")).text == "Booked."

    in_group = await ask_fully(rig, anna, group, "/behaviors")
    assert await press_now(rig, anna, in_group, "Turn on") == sentence("clear.not_yours")
    await press_now(rig, ben, in_group, "Turn on")
    await shown(rig, in_group, is_on)
    assert await has_tool(anna, group, "/ask Hello")

    await rig.bot.stop()
    await rig.start(learn="off", behaviors=f"{PARTS}:Harbour@off")
    assert await has_tool(anna, annas)
    await press_now(rig, anna, listed, "Turn off")
    await shown(rig, listed, is_off)
    assert not await has_tool(anna, annas)


async def test_an_operators_selector_and_agent_take_the_place_of_ours(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna(learn="off", features=f"{PARTS}:porter")

    async def answer(text: str) -> str:
        return (await rig.ask(anna, chat, text)).text

    rig.script.on("Hello", "Hello yourself.")
    rig.script.on("How are you?", "Very well.")
    first, second = await answer("Hello"), await answer("How are you?")
    asked = len(main_requests(rig))
    assert await answer("Who is there?") == "The porter."
    assert len(main_requests(rig)) == asked
    rig.script.on("Fall over", "Ours answers.")
    assert await answer("Fall over") == "Ours answers."
    window = [message.content for message in main_requests(rig)[-1].messages[1:3]]
    assert window == ["Hello", first]
    assert second not in str(main_requests(rig)[-1].messages[1:-1])
    failed = await rig.bot.wait_for_log("class failed")
    assert failed["what"] == "agent"
    assert "Fall over" not in str(rig.bot.log)
