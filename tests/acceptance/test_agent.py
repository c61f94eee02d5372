"""Tools run, limits hold, and mistakes of the model or its server never show (A10-A13)."""

import json

from tests.acceptance.rig import Rig
from tests.acceptance.talk import said
from tests.servers.model_api import Reply, tool_call

UUID = "8E6C1F0A-7B1D-4C55-9A5E-2F1B9D3E4A77"


async def test_a10_two_tool_calls_run_at_once_and_the_next_turn_does_not_see_them(rig: Rig) -> None:
    await rig.start()
    anna, chat = rig.anna()
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
    assert rig.model.log.refusals == []


async def test_a13_the_text_of_the_model_is_shown_word_for_word(rig: Rig) -> None:
    await rig.start()
    anna, chat = rig.anna()
    call = json.dumps({"function_call": {"name": "calculate", "arguments": {"expression": "1"}}})
    for text in ("About AI: x", "...", "?!", f"See {UUID}.", f"(Block {UUID})", call):
        rig.script.then(text)
        assert (await rig.ask(anna, chat, "Say it")).text == text

    beside = Reply("Let me see.", (tool_call("calculate", expression="6 * 7"),))
    rig.script.then(beside, "It is 42.")
    assert (await rig.ask(anna, chat, "Six times seven?")).text == "It is 42."
    action, result = rig.requests[-1].messages[-2:]
    assert (action.content, action.tool_calls) == (beside.text, beside.tool_calls)
    assert result.content == "42"
    assert "calculate" not in chat.replies[-1].text
    assert rig.model.log.refusals == []
