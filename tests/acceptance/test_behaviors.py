"""Hooks of an operator's behaviors are called once a step, in order, and break no turn (A29)."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from memory.store.keys import Scope
from tests.acceptance.buttons import erase
from tests.acceptance.operator_behaviors import TOLD
from tests.acceptance.rig import Rig
from tests.acceptance.talk import ask_fully
from tests.servers.bot_api import Chat
from tests.servers.model_api import Reply, tool_call

HERE = "tests.acceptance.operator_behaviors"
BEHAVIORS = f"{HERE}:HookLog {HERE}:Broken {HERE}:Game"

NEW: list[tuple[str, ...]] = [("resume",), ("checkpoint",), ("suspend",)]


class Hooks:
    """The hook calls that the logging behavior has written so far."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def lines(self) -> list[dict[str, Any]]:
        return list(map(orjson.loads, self._file.read_bytes().splitlines()))

    def of(self, chat: Chat) -> list[tuple[str, ...]]:
        """Return the hook calls of a chat with the texts that they got."""
        tag = Scope.of_chat(chat.id).tag
        return [
            (line["hook"], *(text for _, text, _ in line["said"]))
            for line in self.lines
            if line["where"][1] == tag
        ]


async def start(rig: Rig, folder: Path, behaviors: str = BEHAVIORS, **settings: object) -> Hooks:
    hooks = Hooks(folder / "hooks")
    await rig.start(behaviors=behaviors, hook_log=folder / "hooks", **settings)
    return hooks


def turn(asked: str, answered: str, *within: str) -> list[tuple[str, ...]]:
    """Return the hook calls of one turn; `within` are those between the two messages."""
    called = [(hook,) for hook in within if hook == "called"]
    created = [(hook,) for hook in within if hook == "created"]
    return [
        ("resume",),
        *created,
        ("message", asked),
        ("invoke", asked),
        *called,
        ("message", answered),
        ("suspend",),
    ]


@pytest.mark.either_way
async def test_a29_hooks_are_called_in_order_and_once_for_each_message(
    rig: Rig, tmp_path: Path
) -> None:
    hooks = await start(rig, tmp_path)
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    rig.script.on("guess", Reply(tool_calls=(tool_call("guess", number=7),)), "It was too low.")
    await ask_fully(rig, anna, annas, "Hello")
    await ask_fully(rig, ben, bens, "Hello from Ben")
    await ask_fully(rig, anna, annas, "Let us guess")
    await ask_fully(rig, anna, annas, "/help")
    await ask_fully(rig, anna, annas, "/new")
    await ask_fully(rig, anna, annas, "Hello again")
    await rig.wait_until_learned(8)
    question = await ask_fully(rig, anna, annas, "/clear")
    await erase(rig, anna, question, "clear.done", messages=6, vectors=6, waiting=0)
    await ask_fully(rig, anna, annas, "Do we know each other?")

    assert hooks.of(annas) == [
        *turn("Hello", "All right.", "created"),
        *turn("Let us guess", "It was too low.", "called"),
        *NEW,
        *turn("Hello again", "All right."),
        ("deleting",),
        *turn("Do we know each other?", "All right.", "created"),
    ]
    assert hooks.of(bens) == turn("Hello from Ben", "All right.", "created")

    for request in rig.requests:
        assert f"{TOLD} {request.asked}" in request.memory
        assert sum(TOLD in message.content for message in request.messages) == 1
        assert "Hooks: they are written down." in request.messages[0].content
    assert TOLD.encode() not in await rig.stored()
    messages = [message for request in rig.requests for message in request.messages]
    assert [message.role for message in messages if "7 is too low" in message.content] == ["tool"]
    assert {reply.text for reply in bens.replies} == {"All right."}
    failed = {line["hook"] for line in failures(rig)}
    assert failed == {
        "on_resume",
        "on_conversation_created",
        "on_new_message",
        "on_model_invoke",
        "on_suspend",
        "on_conversation_checkpoint",
        "on_conversation_deleting",
    }


@pytest.mark.either_way
async def test_a29_killing_the_process_between_two_messages_changes_no_hook_call(
    rig: Rig, tmp_path: Path
) -> None:
    hooks = await start(rig, tmp_path, f"{HERE}:HookLog {HERE}:Game")
    anna, chat = rig.anna()
    rig.script.on("guess", Reply(tool_calls=(tool_call("guess", number=7),)), "It was too low.")
    for text in ("Hello", "Let us guess", "/new", "Good bye"):
        if text != "Hello":
            await rig.restart()
        await ask_fully(rig, anna, chat, text)
    assert hooks.of(chat) == [
        *turn("Hello", "All right.", "created"),
        *turn("Let us guess", "It was too low.", "called"),
        *NEW,
        *turn("Good bye", "All right."),
    ]
    heard = [line["heard"] for line in hooks.lines if "heard" in line]
    assert heard == [0, 2, 2, 4, 4, 4, 4, 6]
    assert len({line["where"][0] for line in hooks.lines}) == 4


async def test_a29_after_a_crash_hooks_get_the_same_message_again(rig: Rig, tmp_path: Path) -> None:
    hooks = await start(rig, tmp_path, f"{HERE}:HookLog")
    anna, chat = rig.anna()
    gate = rig.script.hold("Hello", "Never said.", "Hello, Anna.")
    said = await rig.say_until_asked(anna, chat, "Hello")
    await rig.restart()
    gate.set()
    assert (await chat.wait_for_reply(after=said)).text == "Hello, Anna."
    await ask_fully(rig, anna, chat, "And now?")
    begun: list[tuple[str, ...]] = turn("Hello", "", "created")[:4]
    assert hooks.of(chat) == [
        *begun,
        *turn("Hello", "Hello, Anna.", "created"),
        *turn("And now?", "All right."),
    ]
    messages = [line["said"] for line in hooks.lines if line["hook"] == "message"]
    assert messages[0] == messages[1] == [["user", "Hello", [said.id]]]


def failures(rig: Rig) -> list[dict[str, Any]]:
    """Return the log lines about failed behaviors; their tracebacks are expected."""
    rig.bot.raw = [line for line in rig.bot.raw if "behavior failed" not in line]
    return rig.bot.lines("behavior failed")
