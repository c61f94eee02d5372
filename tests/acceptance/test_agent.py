"""Tools run, limits hold, and mistakes of the model or its server never show (A10-A13)."""

import json
from dataclasses import replace

from memory.behaviors.steps import ToolCall
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import said
from tests.servers.model_api import Quirk, Reply, StreamBreak, tool_call

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


async def test_a11_a_model_that_always_calls_a_tool_has_to_answer_at_the_step_limit(
    rig: Rig,
) -> None:
    await rig.start(max_steps=3, max_calls_per_tool=2)
    anna, chat = rig.anna()
    sums = [Reply(tool_calls=(tool_call("calculate", expression="1 + 1"),)) for _ in range(3)]
    rig.script.on(lambda chat: "sums" in chat.asked and chat.tool_choice == "none", "It is two.")
    rig.script.on("sums", *sums)
    assert (await rig.ask(anna, chat, "Do sums")).text == "It is two."
    assert [request.tool_choice for request in rig.requests] == ["auto"] * 3 + ["none"]
    results = [message.content for message in rig.requests[-1].messages if message.role == "tool"]
    assert results == ["2", "2", "Error: calculate may run 2 times for one answer, and did"]

    rig.script.on("For ever", *sums)
    assert (await rig.ask(anna, chat, "For ever")).text == sentence("error.empty_answer")
    assert len(rig.requests) == 4 + 4
    assert rig.model.log.refusals == []


async def test_a12_a_wrong_tool_call_is_reported_to_the_model_and_the_run_continues(
    rig: Rig,
) -> None:
    rig.model.dialect = replace(rig.model.dialect, reads_arguments=True)
    await rig.start(max_steps=9, max_calls_per_tool=9)
    anna, chat = rig.anna()
    wrong = {
        tool_call("functions.launch"): "there is no tool 'functions.launch'; there are: current_",
        ToolCall(
            "id-1", "calculate", '{"expression": '
        ): "wrong arguments: arguments: Invalid JSON",
        ToolCall("id-2", "calculate", "[1]"): "wrong arguments: arguments: Input should be an obj",
        tool_call("calculate"): "wrong arguments: expression: Field required",
        tool_call("calculate", expression="1 / 0"): "division by zero",
        tool_call("calculate", expression="open('/etc')"): "not an expression of numbers",
        tool_call("current_time", timezone="Mars/Olympus"): "unknown time zone 'Mars/Olympus'",
        tool_call("search_memory", query="boat", k=99): "wrong arguments: k: Input should be less",
    }
    rig.script.on("tools", *(Reply(tool_calls=(call,)) for call in wrong), "I got it wrong.")
    assert (await rig.ask(anna, chat, "Try your tools")).text == "I got it wrong."
    results = [message for message in rig.requests[-1].messages if message.role == "tool"]
    for result, (call, text) in zip(results, wrong.items(), strict=True):
        assert result.tool_call_id == call.id
        assert result.content.startswith(f"Error: {text}")

    assert (await rig.ask(anna, chat, "Good night")).text == "All right."
    assert [role for role, _ in said(rig.requests[-1])] == ["system", "user", "assistant", "user"]
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


async def test_a_model_server_that_leaves_fields_out_works_like_any_other(model_rig: Rig) -> None:
    rig = model_rig
    await rig.start()
    anna, chat = rig.anna()
    for number, quirk in enumerate(Quirk):
        calls = tuple(tool_call("calculate", expression=f"{number} + {i}") for i in (1, 2))
        rig.script.then(Reply(tool_calls=calls), f"Answer {number}.")
        rig.model.faults.add(quirk, times=2)
        assert (await rig.ask(anna, chat, f"Question {number}")).text == f"Answer {number}."
        results = [message.content for message in rig.requests[-1].messages[-2:]]
        assert results == [str(number + 1), str(number + 2)]
    assert rig.model.log.refusals == []


async def test_half_an_answer_is_never_shown(model_rig: Rig) -> None:
    """An answer that breaks off once is requested again; after a second time the bot says sorry."""
    rig = model_rig
    await rig.start()
    anna, chat = rig.anna()
    for broken in (StreamBreak.CUT, StreamBreak.DROP, StreamBreak.ERROR, StreamBreak.MALFORMED):
        rig.script.then("One two three four five six.", "Seven eight nine ten.")
        rig.model.faults.add(broken)
        assert (await rig.ask(anna, chat, "Count")).text == "Seven eight nine ten."
        seen = len(rig.bot.log)
        rig.model.faults.add(broken, times=2)
        reply = await rig.ask(anna, chat, "Count again")
        line = await rig.bot.wait_for_log("no answer", after=seen)
        assert line["reason"] == "AnswerIncomplete"
        assert reply.text == sentence("error.turn", reference=line["reference"])
    assert len(rig.requests) == 4 * (2 + 2)
    assert (await rig.ask(anna, chat, "Good night")).text == "All right."
