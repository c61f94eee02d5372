"""The local model server answers over both APIs as the SDK expects, and fails as servers do."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from itertools import combinations
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from memory.behaviors.steps import ToolCall
from tests.servers.model_api import (
    Break,
    ChatRequest,
    ModelApiServer,
    Quirk,
    Reply,
    Scripted,
    StreamBreak,
    is_embeddings,
    is_responses,
    rate_limited,
    server_error,
)
from tests.servers.model_api.answers import Usage, stream
from tests.servers.model_api.requests import EmbeddingsRequest
from tests.servers.model_api_client import Streamed, client_of, collect, collect_into
from tests.servers.word_vectors import embed

TEXT = "A longer answer,\n\n with  blanks, 日本語の長い言葉が続くのですよ and a 🙂 at its end. "
CALLS = (
    ToolCall("call_a", "calculate", '{"expression": "(1 + 2) * 3 / 4"}'),
    ToolCall("call_b", "current_time", "{}"),
)
SCHEMA: dict[str, object] = {"type": "object", "properties": {"it": {"type": "string"}}}
FUNCTIONS: list[dict[str, object]] = [{"name": call.name, "parameters": SCHEMA} for call in CALLS]
CHAT_TOOLS = [{"type": "function", "function": function} for function in FUNCTIONS]
TOOLS = [{"type": "function", "strict": False, **function} for function in FUNCTIONS]
ENCRYPTED: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"]}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
EMBEDDINGS = EmbeddingsRequest(model="e", texts=("text",))


@pytest.fixture
async def server() -> AsyncIterator[ModelApiServer]:
    async with ModelApiServer(Scripted(TEXT)) as server:
        script = server.responder
        assert isinstance(script, Scripted)
        script.on("tools", Reply("Let me see.", CALLS))
        yield server


@pytest.fixture
async def client(server: ModelApiServer) -> AsyncIterator[AsyncOpenAI]:
    async with client_of(server) as client:
        yield client


async def chat(client: AsyncOpenAI, text: str = "hello", **more: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return await client.chat.completions.create(model="m", messages=messages, **more)


async def said(client: AsyncOpenAI, text: str) -> str | None:
    content: str | None = (await chat(client, text)).choices[0].message.content
    return content


async def streamed(client: AsyncOpenAI, text: str = "hello", **more: Any) -> Streamed:
    usage = {"stream_options": {"include_usage": True}, **more}
    return await collect(await chat(client, text, stream=True, **usage))


async def respond(client: AsyncOpenAI, text: object = "hello", **more: Any) -> Response:
    response = await client.responses.create(model="m", **{"input": text, **more})
    assert isinstance(response, Response)
    Response.model_validate(response.model_dump(by_alias=True))
    return response


async def events(client: AsyncOpenAI, text: str = "hello", **more: Any) -> list[Any]:
    """Return the events of a streamed response; each fits the types of the SDK."""
    asked: dict[str, Any] = {"input": text, "stream": True, **more}
    found = [event async for event in await client.responses.create(model="m", **asked)]
    for event in found:
        EVENT.validate_python(event.model_dump(by_alias=True), strict=True)
    return found


async def test_a_chat_answer_is_returned_unchanged_whole_and_in_pieces(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    answer = await chat(client)
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason, answer.model) == (TEXT, "stop", "m")
    pieces = await streamed(client)
    assert (pieces.text, pieces.finish_reason, pieces.chunks[-1].choices) == (TEXT, "stop", [])
    assert len(pieces.chunks) > 10
    assert pieces.usage
    assert pieces.usage.total_tokens > pieces.usage.prompt_tokens > 0
    assert (await collect(await chat(client, stream=True))).usage is None
    message = (await chat(client, "use tools", tools=CHAT_TOOLS)).choices[0].message
    assert message.content == "Let me see."
    assert [(call.id, call.function.arguments) for call in message.tool_calls] == [
        (call.id, call.arguments) for call in CALLS
    ]
    pieces = await streamed(client, "use tools", tools=CHAT_TOOLS)
    assert (pieces.ids, pieces.names) == (["call_a", "call_b"], ["calculate", "current_time"])
    assert pieces.arguments == [call.arguments for call in CALLS]
    assert (pieces.text, pieces.finish_reason) == ("Let me see.", "tool_calls")
    script = server.responder = Scripted("")
    script.then(Reply("Half a", finish_reason="length"))
    assert (await chat(client)).choices[0].finish_reason == "length"
    assert ((await streamed(client)).text, await said(client, "hello")) == ("", "")


@given(text=st.text(max_size=300), quirks=st.sets(st.sampled_from(Quirk)))
def test_the_pieces_of_any_text_form_the_text(text: str, quirks: set[Quirk]) -> None:
    parts, _ = stream(ChatRequest("m", ()), Reply(text), Usage(0, 0), quirks - {Quirk.REASONING})
    lines = [line for part in parts for line in part.splitlines() if line.startswith(b"data: ")]
    chunks = [json.loads(line.removeprefix(b"data: ")) for line in lines]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(delta["content"] for delta in deltas) == text


async def test_a_response_is_returned_unchanged_whole_and_in_events(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    response = await respond(client, instructions="Be kind.")
    assert (response.output_text, response.status, response.model) == (TEXT, "completed", "m")
    [request] = server.log.chats
    assert is_responses(request)
    assert [each.content for each in request.messages] == ["Be kind.", "hello"]
    found = await events(client)
    kinds = [event.type.removeprefix("response.") for event in found]
    assert list(dict.fromkeys(kinds)) == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.done", "content_part.done", "output_item.done"),
        "completed",
    ]
    assert [event.sequence_number for event in found] == list(range(len(found)))
    deltas = [each.delta for each in found if each.type == "response.output_text.delta"]
    assert "".join(deltas) == found[-1].response.output_text == TEXT
    assert len(deltas) > 10
    found = await events(client, "use tools", tools=TOOLS)
    done = [each.item for each in found if each.type == "response.output_item.done"]
    assert [(each.call_id, each.name, each.arguments) for each in done[1:]] == [
        (call.id, call.name, call.arguments) for call in CALLS
    ]
    deltas = [each.delta for each in found if "function_call_arguments.delta" in each.type]
    assert "".join(deltas) == "".join(call.arguments for call in CALLS)


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (Reply(TEXT, CALLS, thoughts="Hm."), "completed", None),
        (Reply(""), "completed", None),
        (Reply(refusal="I may not."), "completed", None),
        (Reply("Half a", finish_reason="length"), "incomplete", "max_output_tokens"),
        (Reply("", finish_reason="content_filter"), "incomplete", "content_filter"),
        (Reply("", finish_reason="failed"), "failed", None),
    ],
)
async def test_status_and_last_event_say_how_a_response_ended(
    server: ModelApiServer, client: AsyncOpenAI, reply: Reply, status: str, reason: str | None
) -> None:
    server.responder = Scripted(reply)
    server.faults.add(Quirk.REASONING)
    whole = await respond(client, tools=TOOLS)
    last = (await events(client, tools=TOOLS, **ENCRYPTED))[-1]
    for response in (whole, last.response):
        details = response.incomplete_details
        assert (response.status, details and details.reason) == (status, reason)
    assert last.type == f"response.{status}"
    assert (whole.error is not None) == (status == "failed")


async def test_thoughts_are_counted_encrypted_and_taken_back(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    script = server.responder = Scripted(Reply("Four.", thoughts="Two and two.", cached_tokens=4))
    script.then(
        Reply("", finish_reason="length", thoughts="Hm. " * 100),
        Reply(tool_calls=CALLS, thoughts="Two tools."),
        "Fine.",
    )
    cut = await respond(client)
    assert [each.type for each in cut.output] == ["reasoning"]
    assert cut.usage
    assert cut.usage.output_tokens_details.reasoning_tokens == cut.usage.output_tokens == 100
    first = await respond(client, tools=TOOLS, **ENCRYPTED)
    sent = [entry.model_dump(exclude_none=True) for entry in first.output]
    assert sent[0]["encrypted_content"]
    outputs = [{"type": "function_call_output", "call_id": c.id, "output": "4"} for c in CALLS]
    entries = [{"role": "user", "content": "hello"}, *sent, *outputs]
    assert (await respond(client, entries, tools=TOOLS, **ENCRYPTED)).output_text == "Fine."
    messages = server.log.chats[-1].messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool"]
    assert messages[1].tool_calls == CALLS
    whole = (await respond(client)).usage
    plain = (await chat(client)).usage
    assert whole
    assert (whole.output_tokens, plain.completion_tokens) == (4, 4)
    assert whole.input_tokens_details.cached_tokens == 4
    assert plain.prompt_tokens_details.cached_tokens == 4
    assert whole.output_tokens_details.reasoning_tokens == 3
    assert plain.completion_tokens_details.reasoning_tokens == 3


async def test_requests_are_logged_awaited_and_held_back_by_a_gate(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    gate = asyncio.Event()
    script = server.responder = Scripted()
    script.on("slow", Reply("At last.", gate=gate))
    slow = asyncio.create_task(chat(client, "slow", tools=CHAT_TOOLS, tool_choice="none"))
    await server.wait_for(lambda _: True)
    await client.embeddings.create(model="e", input=["one", "two"])
    assert await said(client, "quick") == "All right."
    assert not slow.done()
    gate.set()
    assert (await slow).choices[0].message.content == "At last."
    await client.embeddings.create(model="e", input="three")
    embeds = lambda call: call.request is not None and is_embeddings(call.request)  # noqa: E731
    assert await server.wait_for(embeds, count=2) is server.log.calls[-1]
    with pytest.raises(TimeoutError):
        await server.wait_for(lambda _: False, timeout_s=0.01)
    logged = server.log.chats[0]
    assert [(message.role, message.content) for message in logged.messages] == [("user", "slow")]
    assert [tool.name for tool in logged.tools] == ["calculate", "current_time"]
    assert (logged.tool_choice, logged.usable_tools) == ("none", frozenset())
    assert server.log.embedded == ["one", "two", "three"]


async def test_a_refusal_or_a_break_comes_as_often_as_it_was_added(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.faults.add(rate_limited(7))
    with pytest.raises(openai.RateLimitError) as limited:
        await chat(client)
    assert limited.value.response.headers["retry-after"] == "7"
    server.faults.add(server_error(), times=2)
    for _ in range(2):
        with pytest.raises(openai.InternalServerError):
            await chat(client)
    server.faults.add(Break.HTML)
    assert "<!doctype html>" in str(await chat(client))
    server.faults.add(Break.DROP)
    with pytest.raises(openai.APIConnectionError):
        await chat(client)
    server.faults.add(Break.HANG)
    with pytest.raises(openai.APITimeoutError):
        await chat(client.with_options(timeout=0.2))
    server.faults.add(server_error(), when=is_embeddings, times=None)
    with pytest.raises(openai.InternalServerError):
        await client.embeddings.create(model="e", input="text")
    assert await said(client, "hello") == TEXT
    server.faults.clear()
    await client.embeddings.create(model="e", input="text")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (StreamBreak.CUT, None),
        (StreamBreak.STALL, httpx2.ReadTimeout),
        (StreamBreak.DROP, openai.APIConnectionError),
        (StreamBreak.ERROR, openai.APIError),
        (StreamBreak.MALFORMED, json.JSONDecodeError),
        (StreamBreak.GARBLED, UnicodeDecodeError),
        (StreamBreak.MISSHAPEN, AttributeError),
    ],
)
async def test_a_stream_breaks_after_its_first_half(
    server: ModelApiServer, client: AsyncOpenAI, fault: StreamBreak, error: type[Exception] | None
) -> None:
    server.faults.add(fault)
    pieces = Streamed()
    reading = collect_into(pieces, await chat(client.with_options(timeout=0.2), stream=True))
    if error:
        with pytest.raises((error, openai.APITimeoutError)):
            await reading
    else:
        await reading
    assert (pieces.finish_reason, pieces.usage) == (None, None)
    assert pieces.text not in ("", TEXT)
    assert TEXT.startswith(pieces.text)


async def test_a_hanging_answer_does_not_delay_the_stop(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    for fault in (Break.HANG, StreamBreak.STALL):
        server.faults.add(fault)
    asked = [asyncio.create_task(chat(client)), asyncio.create_task(streamed(client))]
    await server.wait_for(lambda call: bool(call.faults), count=2)
    async with asyncio.timeout(5):
        await server.stop()
        ends = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(end, openai.APIConnectionError | httpx2.HTTPError) for end in ends)


@pytest.mark.parametrize("quirks", [*([quirk] for quirk in Quirk), list(Quirk)])
async def test_quirks_lose_no_part_of_an_answer(
    server: ModelApiServer, client: AsyncOpenAI, quirks: Sequence[Quirk]
) -> None:
    for quirk in quirks:
        server.faults.add(quirk, times=2)
    pieces = await streamed(client)
    assert (pieces.text, pieces.finish_reason) == (TEXT, "stop")
    pieces = await streamed(client, "use tools")
    assert (pieces.text, pieces.names) == ("Let me see.", ["calculate", "current_time"])
    assert pieces.arguments == [call.arguments for call in CALLS]
    assert pieces.finish_reason == "tool_calls"
    assert (pieces.usage is None) is (Quirk.NO_USAGE in quirks)


UNRELATED = [
    "My sister's boat is called Ada.",
    "The dentist expects me on Tuesday at nine.",
    "I would like to learn how to bake sourdough.",
    "The deadline of our project moved to Friday.",
    "Мою собаку зовут Бублик.",
    "京都へ行きたいです。",
    "Meine Tante wohnt in Bremen.",
]
RELATED = [
    ("What is my sister's boat called?", "My sister's boat is called Ada."),
    ("When do I see the dentist?", "The dentist expects me on Tuesday at nine."),
    ("Do you still know what I wanted to bake?", "I would like to learn how to bake sourdough."),
    ("как зовут мою собаку?", "Мою собаку зовут Бублик."),
    ("京都へはいつ行きたいですか", "京都へ行きたいです。"),
    ("Wo wohnt meine Tante?", "Meine Tante wohnt in Bremen."),
]


def test_vectors_are_close_exactly_if_texts_share_rare_words() -> None:
    def likeness(one: str, other: str) -> float:
        return float(embed(one) @ embed(other))

    for one, other in combinations(UNRELATED, 2):
        assert abs(likeness(one, other)) < 0.2
    for question, answer in RELATED:
        others = [likeness(question, text) for text in UNRELATED if text != answer]
        assert likeness(question, answer) > max(0.3, 2 * max(others))
    assert likeness("What is it you have about boats", "What is it you have on jazz") < 0.2
