"""Answers over the Responses API: what is sent, what is read, and that nothing is stored."""

from collections.abc import AsyncIterator

import pytest

from bot.model.call import CallLabels, ModelReply, ModelRequest, PromptMessage
from bot.model.chat_model import ChatParameters, OpenAIChatModel
from bot.model.dialects import ResponseAccumulator
from bot.model.model_errors import AnswerIncomplete
from bot.model.openai_client import ModelClient, open_client
from tests.bot.model.conftest import CALLS, CLOCK, HELLO, TEXT
from tests.bot.model.internal_calls import PARTS, Internal
from tests.servers.model_api import Dialect, ModelApiServer, Quirk, Reply, Scripted


@pytest.fixture
async def client(server: ModelApiServer) -> AsyncIterator[ModelClient]:
    async with open_client(server.base_url, "any", timeout_s=60, api="responses") as client:
        yield client


def steps(reply: ModelReply) -> tuple[PromptMessage, ...]:
    """Return the messages that follow in the prompt of the next step."""
    said = PromptMessage(
        "assistant", reply.text, tool_calls=reply.tool_calls, reasoning=reply.reasoning
    )
    return (said, *(PromptMessage("tool", "7", tool_call_id=call.id) for call in reply.tool_calls))


async def test_a_request_asks_the_server_to_store_nothing(
    model: OpenAIChatModel, server: ModelApiServer
) -> None:
    reply = await model.complete(ModelRequest(HELLO, (CLOCK,)))
    assert (reply.text, reply.finish_reason) == (TEXT, "stop")
    assert server.log.chats[0].raw == {
        "model": "gpt-test",
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {
                "type": "function",
                "name": "clock",
                "description": "Tell the time",
                "parameters": CLOCK.parameters,
                "strict": False,
            }
        ],
    }


async def test_options_and_labels_have_apis_names(
    client: ModelClient, server: ModelApiServer
) -> None:
    model = OpenAIChatModel(client, "gpt-test", 10, ChatParameters(1000, "low", "high", "flex"))
    await model.complete(ModelRequest(HELLO, labels=CallLabels("c0ffee", "beef")))
    sent = server.log.chats[0].raw
    assert sent["reasoning"] == {"effort": "low"}
    assert sent["text"] == {"verbosity": "high"}
    assert sent["max_output_tokens"] == 4000
    named = ("service_tier", "prompt_cache_key", "safety_identifier")
    assert [sent[name] for name in named] == ["flex", "c0ffee", "beef"]


async def test_text_calls_and_usage_are_read(model: OpenAIChatModel, script: Scripted) -> None:
    script.then(Reply("Let me see.", CALLS, thoughts="Hm. " * 40, cached_tokens=3))
    reply = await model.complete(ModelRequest(HELLO, (CLOCK,)))
    assert (reply.text, reply.tool_calls) == ("Let me see.", CALLS)
    assert reply.finish_reason == "tool_calls"
    assert reply.usage.cached_tokens == 3
    assert 0 < reply.usage.reasoning_tokens < reply.usage.completion_tokens


@pytest.mark.parametrize("quirk", [None, *Quirk], ids=str)
async def test_steps_are_sent_back_with_their_reasoning(
    model: OpenAIChatModel, script: Scripted, server: ModelApiServer, quirk: Quirk | None
) -> None:
    """Like OpenAI, the local server refuses reasoning that it has not encrypted itself."""
    if quirk is not None:
        server.faults.add(quirk, times=None)
    script.then(Reply("Let me see.", CALLS, thoughts="What time is it there?"))
    first = await model.complete(ModelRequest(HELLO, (CLOCK,)))
    reply = await model.complete(ModelRequest((*HELLO, *steps(first)), (CLOCK,)))
    assert reply.text == TEXT
    sent = server.log.chats[1].raw["input"]
    assert isinstance(sent, list)
    kinds = [entry.get("type", entry.get("role")) for entry in sent]
    said = ["reasoning", "assistant", "function_call", "function_call"]
    assert kinds == ["system", "user", *said, "function_call_output", "function_call_output"]
    assert server.log.refusals == []


def test_reasoning_is_sent_back_without_half_an_emoji_and_does_not_show_in_a_repr() -> None:
    answer = ResponseAccumulator()
    item = {"type": "reasoning", "encrypted_content": "x\ud83d", "summary": [{"text": "\ud83d"}]}
    answer.add({"type": "response.output_item.done", "item": item})
    (sent,) = (reply := answer.reply()).reasoning
    assert "encrypted" not in repr(reply)
    assert sent.body == item | {"encrypted_content": "x\ufffd", "summary": [{"text": "\ufffd"}]}


async def test_the_reasoning_of_another_model_is_not_sent(
    client: ModelClient, model: OpenAIChatModel, script: Scripted, server: ModelApiServer
) -> None:
    script.then(Reply(tool_calls=CALLS, thoughts="Hm."))
    first = await model.complete(ModelRequest(HELLO, (CLOCK,)))
    other = OpenAIChatModel(client, "gpt-other", timeout_s=60)
    assert (await other.complete(ModelRequest((*HELLO, *steps(first)), (CLOCK,)))).text == TEXT
    assert "reasoning" not in str(server.log.chats[1].raw["input"])


async def test_a_server_that_encrypts_no_reasoning_is_asked_without_it(
    model: OpenAIChatModel, script: Scripted, server: ModelApiServer
) -> None:
    server.dialect = Dialect(unsupported=frozenset({"include"}))
    script.then(Reply(tool_calls=CALLS, thoughts="Hm."))
    first = await model.complete(ModelRequest(HELLO, (CLOCK,)))
    assert (await model.complete(ModelRequest((*HELLO, *steps(first)), (CLOCK,)))).text == TEXT
    assert len(server.log.refusals) == 1


async def test_a_failed_answer_raises_an_error(model: OpenAIChatModel, script: Scripted) -> None:
    script.then(*[Reply("Half", finish_reason="failed")] * 2)
    with pytest.raises(AnswerIncomplete):
        await model.complete(ModelRequest(HELLO))


async def test_a_models_own_refusal_is_its_answer(model: OpenAIChatModel, script: Scripted) -> None:
    script.then(Reply(refusal="I would rather not."))
    assert (await model.complete(ModelRequest(HELLO))).text == "I would rather not."


# Internal calls


@pytest.mark.parametrize("internal", ["responses"], indirect=True)
async def test_internal_calls_store_nothing_and_prose_has_a_token_limit(internal: Internal) -> None:
    assert await internal.fill() == PARTS
    internal.script.then("Tea.")
    assert await internal.write() == "Tea."
    assert internal.chats[0].response_format == "json_schema"
    assert internal.sent("store") == [False, False]
    assert internal.sent("stream") == [None, None]
    assert internal.sent("max_output_tokens") == [None, 300]
