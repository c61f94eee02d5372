"""Valid requests through the real SDK return what the responder answered."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionUserMessageParam

from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from tests.servers.model_api import (
    ChatRequest,
    Dialect,
    ModelApiServer,
    Quirk,
    Reply,
    Scripted,
    is_embeddings,
    tool_call,
)
from tests.servers.model_api.answers import Usage, stream
from tests.servers.model_api_client import client_of, collect

HELLO = ChatCompletionUserMessageParam(role="user", content="hello")
TEXT = "A longer answer,\n\n with  blanks, 日本語の長い言葉が続くのですよ and a 🙂 at its end. "
CALLS = (
    ToolCall("call_a", "calculate", '{"expression": "(1 + 2) * 3 / 4"}'),
    ToolCall("call_b", "current_time", "{}"),
)


def tool(name: str) -> ChatCompletionFunctionToolParam:
    parameters: dict[str, object] = {"type": "object", "properties": {"it": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [tool("calculate"), tool("current_time")]


async def test_a_text_is_returned_unchanged() -> None:
    async with ModelApiServer(Scripted(TEXT)) as server, client_of(server) as client:
        answer = await client.chat.completions.create(model="m", messages=[HELLO])
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason, answer.model) == (TEXT, "stop", "m")


async def test_the_pieces_of_a_streamed_text_form_the_text() -> None:
    async with ModelApiServer(Scripted(TEXT)) as server, client_of(server) as client:
        stream = await client.chat.completions.create(model="m", messages=[HELLO], stream=True)
        streamed = await collect(stream)
    assert (streamed.text, streamed.finish_reason) == (TEXT, "stop")
    assert len(streamed.chunks) > 10
    assert len({chunk.id for chunk in streamed.chunks}) == 1


@given(text=st.text(max_size=300), quirks=st.sets(st.sampled_from(Quirk)))
def test_the_pieces_of_any_text_form_the_text(text: str, quirks: set[Quirk]) -> None:
    said, _ = stream(ChatRequest("m", ()), Reply(text), Usage(0, 0), quirks - {Quirk.REASONING})
    lines = [line for part in said for line in part.splitlines() if line.startswith(b"data: ")]
    chunks = [json.loads(line.removeprefix(b"data: ")) for line in lines]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(delta["content"] for delta in deltas) == text


async def test_an_empty_text_is_returned_as_empty() -> None:
    async with ModelApiServer(Scripted("")) as server, client_of(server) as client:
        answer = await client.chat.completions.create(model="m", messages=[HELLO])
        stream = await client.chat.completions.create(model="m", messages=[HELLO], stream=True)
        streamed = await collect(stream)
    assert (answer.choices[0].message.content, streamed.text) == ("", "")
    assert streamed.finish_reason == "stop"


async def test_an_answer_may_have_calls_and_text() -> None:
    script = Scripted(Reply("Let me see.", CALLS))
    async with ModelApiServer(script) as server, client_of(server) as client:
        answer = await client.chat.completions.create(model="m", messages=[HELLO], tools=TOOLS)
    message = answer.choices[0].message
    calls = [
        (call.id, call.function.name, call.function.arguments)
        for call in message.tool_calls or []
        if call.type == "function"
    ]
    assert calls == [(call.id, call.name, call.arguments) for call in CALLS]
    assert (message.content, answer.choices[0].finish_reason) == ("Let me see.", "tool_calls")


async def test_streamed_calls_come_in_deltas() -> None:
    script = Scripted(Reply("Let me see.", CALLS))
    async with ModelApiServer(script) as server, client_of(server) as client:
        stream = await client.chat.completions.create(
            model="m", messages=[HELLO], tools=TOOLS, stream=True
        )
        streamed = await collect(stream)
    assert streamed.ids == ["call_a", "call_b"]
    assert streamed.names == ["calculate", "current_time"]
    assert streamed.arguments == [call.arguments for call in CALLS]
    assert (streamed.text, streamed.finish_reason) == ("Let me see.", "tool_calls")


async def test_usage_is_streamed_only_when_asked_for() -> None:
    async with ModelApiServer(Scripted(TEXT)) as server, client_of(server) as client:
        plain = await client.chat.completions.create(model="m", messages=[HELLO], stream=True)
        assert (await collect(plain)).usage is None
        counted = await client.chat.completions.create(
            model="m", messages=[HELLO], stream=True, stream_options={"include_usage": True}
        )
        streamed = await collect(counted)
    assert streamed.usage is not None
    assert streamed.usage.total_tokens > streamed.usage.prompt_tokens > 0
    assert streamed.chunks[-1].choices == []


async def test_the_finish_reason_of_the_script_is_kept() -> None:
    script = Scripted(Reply("Half a", finish_reason="length"))
    async with ModelApiServer(script) as server, client_of(server) as client:
        answer = await client.chat.completions.create(model="m", messages=[HELLO])
    assert answer.choices[0].finish_reason == "length"


async def test_a_gate_holds_back_exactly_one_answer() -> None:
    gate = asyncio.Event()
    script = Scripted()
    script.on("slow", Reply("At last.", gate=gate))
    async with ModelApiServer(script) as server, client_of(server) as client:
        slow = asyncio.create_task(said(client, "slow one"))
        await server.wait_for(lambda _: True)
        assert await said(client, "quick one") == "All right."
        assert not slow.done()
        gate.set()
        assert await slow == "At last."


async def said(client: AsyncOpenAI, text: str) -> str | None:
    message = ChatCompletionUserMessageParam(role="user", content=text)
    answer = await client.chat.completions.create(model="m", messages=[message])
    return answer.choices[0].message.content


async def test_rules_answer_in_their_order_and_the_queue_after_them() -> None:
    script = Scripted("else")
    script.on("name", "first", "then always")
    script.on(lambda chat: chat.asked == "my name?", "never")
    script.then("queued")
    async with ModelApiServer(script) as server, client_of(server) as client:
        asked = ["my name?", "hello", "hello", "my name?", "your name?"]
        answers = [await said(client, text) for text in asked]
    assert answers == ["first", "queued", "else", "then always", "then always"]
    assert [chat.asked for chat, _ in script.log] == asked


async def test_a_rule_reads_the_message_and_not_the_memory() -> None:
    script = Scripted()
    script.on("boat", "found")
    async with ModelApiServer(script) as server, client_of(server) as client:
        text = "<memory>\n[today, 09:00] Ann: my boat\n</memory>\n\nand now?"
        assert await said(client, text) == "All right."
    assert server.log.chats[0].memory == "[today, 09:00] Ann: my boat"


async def test_every_request_is_logged_as_a_typed_value() -> None:
    async with ModelApiServer(Scripted()) as server, client_of(server) as client:
        await client.chat.completions.create(
            model="m", messages=[HELLO], tools=TOOLS, tool_choice="none", temperature=0.5
        )
        await client.embeddings.create(model="e", input=["one", "two"])
    chat = server.log.chats[0]
    assert [(message.role, message.content) for message in chat.messages] == [("user", "hello")]
    assert [tool.name for tool in chat.tools] == ["calculate", "current_time"]
    assert (chat.tool_choice, chat.usable_tools) == ("none", frozenset())
    assert chat.raw["temperature"] == 0.5
    assert server.log.embedded == ["one", "two"]
    assert server.log.refusals == []


@pytest.mark.parametrize(
    ("choice", "usable"),
    [
        ("auto", {"calculate", "current_time"}),
        ("required", {"calculate", "current_time"}),
        ("current_time", {"current_time"}),
        ("none", set()),
    ],
)
def test_the_choice_says_which_tools_are_usable(choice: str, usable: set[str]) -> None:
    offered = tuple(ToolDefinition(name, "", {}) for name in ("calculate", "current_time"))
    chat = ChatRequest(model="m", messages=(), tools=offered, tool_choice=choice)
    assert chat.usable_tools == usable


async def test_waiting_finds_earlier_calls_and_counts_them() -> None:
    async with ModelApiServer(Scripted()) as server, client_of(server) as client:
        waiting = asyncio.create_task(
            server.wait_for(
                lambda call: call.request is not None and is_embeddings(call.request), count=2
            )
        )
        await client.embeddings.create(model="e", input="one")
        await said(client, "hello")
        await client.embeddings.create(model="e", input="two")
        call = await waiting
        assert call is server.log.calls[2]
        with pytest.raises(TimeoutError):
            await server.wait_for(lambda _: False, timeout_s=0.01)


async def test_the_models_are_listed() -> None:
    dialect = Dialect(models=frozenset({"small", "large"}))
    async with ModelApiServer(Scripted(), dialect=dialect) as server, client_of(server) as client:
        listed = await client.models.list()
    assert [model.id for model in listed.data] == ["large", "small"]


def test_each_made_call_has_an_id_of_its_own() -> None:
    first, second = tool_call("calculate", expression="1+1"), tool_call("calculate")
    assert (first.name, first.arguments) == ("calculate", '{"expression":"1+1"}')
    assert first.id != second.id
