"""What the model gets, and what becomes of its answers (A10)."""

from itertools import pairwise

import orjson
import pytest

from tests.acceptance.rig import Rig
from tests.acceptance.talk import said
from tests.servers.model_api import ChatRequest, Reply, tool_call


@pytest.mark.either_way
async def test_a10_two_tool_calls_run_at_once_and_the_next_turn_does_not_see_them(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    calls = (tool_call("calculate", expression="6 * 7"), tool_call("current_time", timezone="UTC"))
    rig.script.on("both", Reply(tool_calls=calls), "Here is both.")
    assert (await rig.ask(anna, chat, "Tell me both")).text == "Here is both."
    *_, question, action, first, second = rig.requests[1].messages
    assert question == rig.requests[0].messages[-1]
    assert action.tool_calls == calls
    assert (first.role, first.tool_call_id, first.content) == ("tool", calls[0].id, "42")
    assert (second.role, second.tool_call_id) == ("tool", calls[1].id)
    assert second.content.endswith("+00:00 (UTC)")

    await rig.ask(anna, chat, "And how are you?")
    await rig.ask(anna, chat, "Good night")
    assert said(rig.requests[-1])[1:] == [
        ("user", "Tell me both"),
        ("assistant", "Here is both."),
        ("user", "And how are you?"),
        ("assistant", "All right."),
        ("user", "Good night"),
    ]
    assert all(request.tools == rig.requests[0].tools for request in rig.requests)


THOUGHTS = "Perhaps they mean the harbour at Kirkwall? " * 30


async def test_reasoning_is_returned_within_a_turn_and_never_stored(rig: Rig) -> None:
    await rig.start(openai_api="responses", learn="synopses", learn_every_turns=1)
    anna, chat = rig.anna()
    for number in (1, 2):
        call = tool_call("calculate", expression=f"{number} + 1")
        rig.script.then(Reply("", (call,), thoughts=THOUGHTS), f"Sum {number}.")
        assert (await rig.ask(anna, chat, f"Do sum {number}")).text == f"Sum {number}."
    sent = [str(request.raw["input"]).count("encrypted_content") for request in rig.requests]
    assert [count for request, count in zip(rig.requests, sent, strict=True) if request.tools] == [
        *(0, 1),
        *(0, 1),
    ]
    stored = await rig.stored()
    assert stored
    assert b"gAAAAA" not in stored
    assert "gAAAAA" not in "".join(rig.bot.raw)


@pytest.mark.either_way
async def test_a_conversation_is_sent_as_a_hash_and_a_person_only_if_wanted(rig: Rig) -> None:
    anna, annas = await rig.start_with_anna(openai_safety_identifier="on", openai_verbosity="low")
    ben, bens = rig.ben()
    for person, chat in ((anna, annas), (anna, annas), (ben, bens)):
        await rig.ask(person, chat, "Hello")
    for name in ("prompt_cache_key", "safety_identifier"):
        first, second, other = (str(request.raw[name]) for request in rig.requests)
        assert first == second != other
        assert str(anna.id) not in first
        assert len(first) == 32
    rig.environment["OPENAI_SAFETY_IDENTIFIER"] = "off"
    await rig.restart()
    await rig.ask(anna, annas, "Hello again")
    assert "safety_identifier" not in rig.requests[-1].raw
    assert rig.requests[-1].raw["prompt_cache_key"] == rig.requests[0].raw["prompt_cache_key"]


async def test_the_front_of_the_prompt_stays_byte_identical_until_a_block_leaves_the_window(
    rig: Rig,
) -> None:
    """In a window of 16 a block is two exchanges: every second prompt starts like the last one."""
    anna, chat = await rig.start_with_anna(window_messages=16)
    for turn in range(1, 15):
        await rig.ask(anna, chat, f"Boat number {turn}")
        await rig.wait_until_learned(2 * turn)
    changed = [
        turn
        for turn, (last, this) in enumerate(pairwise(rig.requests), start=2)
        if not wire(this, len(this.messages)).startswith(wire(last, len(last.messages) - 1))
    ]
    assert changed == [10, 12, 14]
    windows = [len(request.messages) - 2 for request in rig.requests]
    assert windows == [*range(0, 18, 2), 14, 16, 14, 16, 14]
    assert [bool(request.memory) for request in rig.requests] == [False] * 9 + [True] * 5


def wire(request: ChatRequest, messages: int) -> bytes:
    """Return the tools and the first messages of a request as they were sent."""
    sent = request.raw["messages"]
    assert isinstance(sent, list)
    return b"".join(map(orjson.dumps, [request.raw["tools"], *sent[:messages]]))
