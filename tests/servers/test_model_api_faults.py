"""The real SDK sees each fault and each quirk as real servers show them."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionUserMessageParam

from tests.servers.model_api import (
    ApiRequest,
    Break,
    Dialect,
    ModelApiServer,
    Quirk,
    Reply,
    Scripted,
    StreamBreak,
    is_embeddings,
    rate_limited,
    server_error,
    tool_call,
)
from tests.servers.model_api.faults import Faults
from tests.servers.model_api.requests import ChatRequest, EmbeddingsRequest
from tests.servers.model_api_client import Streamed, client_of, collect, collect_into

HELLO = ChatCompletionUserMessageParam(role="user", content="hello")
TEXT = "One two three four five six seven eight."
CHAT = ChatRequest(model="m", messages=())
STREAMED_CHAT = ChatRequest(model="m", messages=(), stream=True)
EMBEDDINGS = EmbeddingsRequest(model="e", texts=("text",))


@pytest.fixture
async def server() -> AsyncIterator[ModelApiServer]:
    script = Scripted(TEXT)
    script.on("tools", Reply(tool_calls=(tool_call("f", a=1), tool_call("g", b="two words"))))
    async with ModelApiServer(script) as server:
        yield server


@pytest.fixture
async def client(server: ModelApiServer) -> AsyncIterator[AsyncOpenAI]:
    async with client_of(server) as client:
        yield client


async def ask(client: AsyncOpenAI) -> str | None:
    answer = await client.chat.completions.create(model="m", messages=[HELLO])
    return answer.choices[0].message.content


async def ask_streamed(client: AsyncOpenAI, text: str = "hello") -> Streamed:
    stream = await client.chat.completions.create(
        model="m",
        messages=[ChatCompletionUserMessageParam(role="user", content=text)],
        stream=True,
        stream_options={"include_usage": True},
    )
    return await collect(stream)


async def test_a_429_says_how_long_to_wait(server: ModelApiServer, client: AsyncOpenAI) -> None:
    server.faults.add(rate_limited(7))
    with pytest.raises(openai.RateLimitError) as caught:
        await ask(client)
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.code == "rate_limit_exceeded"
    assert await ask(client) == TEXT


async def test_a_500_comes_as_often_as_it_was_added(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.faults.add(server_error(), times=2)
    for _ in range(2):
        with pytest.raises(openai.InternalServerError):
            await ask(client)
    assert await ask(client) == TEXT
    assert [len(call.faults) for call in server.log.calls] == [1, 1, 0]


async def test_a_page_instead_of_an_answer_is_a_string(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.faults.add(Break.HTML)
    answer: object = await client.chat.completions.create(model="m", messages=[HELLO])
    assert isinstance(answer, str)
    assert answer.startswith("<!doctype html>")


async def test_a_dropped_connection_is_a_connection_error(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.faults.add(Break.DROP)
    with pytest.raises(openai.APIConnectionError):
        await ask(client)


async def test_a_hanging_answer_reaches_the_clients_timeout(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.faults.add(Break.HANG)
    with pytest.raises(openai.APITimeoutError):
        await ask(client.with_options(timeout=0.2))
    assert await ask(client) == TEXT


async def test_a_hanging_answer_does_not_delay_the_stop() -> None:
    async with asyncio.timeout(5):
        async with ModelApiServer(Scripted()) as server, client_of(server) as client:
            server.faults.add(Break.HANG)
            server.faults.add(StreamBreak.STALL)
            asked = [asyncio.create_task(ask(client)), asyncio.create_task(ask_streamed(client))]
            await server.wait_for(lambda call: bool(call.faults), count=2)
            await server.stop()
            ends = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(end, openai.APIConnectionError | httpx2.HTTPError) for end in ends)


async def test_a_cut_stream_ends_early_without_a_finish_reason(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.faults.add(StreamBreak.CUT)
    streamed = await ask_streamed(client)
    assert (streamed.finish_reason, streamed.usage) == (None, None)
    assert_half(streamed)


def assert_half(streamed: Streamed) -> None:
    assert streamed.text
    assert streamed.text != TEXT
    assert TEXT.startswith(streamed.text)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (StreamBreak.DROP, openai.APIConnectionError),
        (StreamBreak.ERROR, openai.APIError),
        (StreamBreak.MALFORMED, json.JSONDecodeError),
        (StreamBreak.GARBLED, UnicodeDecodeError),
        (StreamBreak.MISSHAPEN, AttributeError),
    ],
)
async def test_a_stream_breaks_after_its_first_half(
    server: ModelApiServer, client: AsyncOpenAI, fault: StreamBreak, error: type[Exception]
) -> None:
    server.faults.add(fault)
    stream = await client.chat.completions.create(model="m", messages=[HELLO], stream=True)
    streamed = Streamed()
    with pytest.raises(error):
        await collect_into(streamed, stream)
    assert streamed.finish_reason is None
    assert_half(streamed)


async def test_a_stalled_stream_reaches_the_read_timeout(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.faults.add(StreamBreak.STALL)
    stream = await client.with_options(timeout=0.2).chat.completions.create(
        model="m", messages=[HELLO], stream=True
    )
    streamed = Streamed()
    with pytest.raises((openai.APITimeoutError, httpx2.ReadTimeout)):
        await collect_into(streamed, stream)
    assert_half(streamed)


@pytest.mark.parametrize("quirk", Quirk)
@pytest.mark.parametrize("asked", ["hello", "use tools"])
async def test_a_quirk_loses_no_part_of_an_answer(
    server: ModelApiServer, client: AsyncOpenAI, quirk: Quirk, asked: str
) -> None:
    plain = await ask_streamed(client, asked)
    server.faults.add(quirk)
    quirky = await ask_streamed(client, asked)
    assert quirky.text == plain.text
    assert (quirky.names, quirky.arguments) == (plain.names, plain.arguments)
    assert quirky.finish_reason == plain.finish_reason
    assert [call.faults for call in server.log.calls] == [(), (quirk,)]


async def test_all_quirks_together_lose_no_part_of_an_answer(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    for quirk in Quirk:
        server.faults.add(quirk, times=None)
    assert (await ask_streamed(client)).text == TEXT
    assert (await ask_streamed(client, "use tools")).arguments == ['{"a":1}', '{"b":"two words"}']


async def wire_of(server: ModelApiServer, quirk: Quirk, asked: str = "hello") -> str:
    server.faults.add(quirk)
    messages = [{"role": "user", "content": asked}]
    body = {"model": "m", "messages": messages, "stream": True}
    async with httpx2.AsyncClient(base_url=server.base_url) as client:
        return (await client.post("/chat/completions", json=body)).text


async def test_quirks_on_the_wire(server: ModelApiServer) -> None:
    assert '"choices":[]' in (await wire_of(server, Quirk.EMPTY_FIRST_CHUNK)).split("\n")[0]
    assert (await wire_of(server, Quirk.COMMENTS)).startswith(": PROCESSING\n\ndata: {")
    assert "}\r\n\r\ndata: [DONE]\r\n\r\n" in await wire_of(server, Quirk.CRLF)
    assert '"index"' not in await wire_of(server, Quirk.NO_INDEX, "use tools")
    assert '"index":1' not in await wire_of(server, Quirk.SAME_INDEX, "use tools")
    assert '"object"' not in await wire_of(server, Quirk.NO_ID)
    assert '"reasoning_content":"Let me' in await wire_of(server, Quirk.REASONING)
    assert "[DONE]" not in await wire_of(server, Quirk.NO_DONE)


async def test_usage_may_be_missing_although_asked_for(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.faults.add(Quirk.NO_USAGE)
    assert (await ask_streamed(client)).usage is None
    assert (await ask_streamed(client)).usage is not None


async def test_embeddings_can_fail_while_chat_works(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.faults.add(server_error(), when=is_embeddings, times=None)
    with pytest.raises(openai.InternalServerError):
        await client.embeddings.create(model="e", input="text")
    assert await ask(client) == TEXT
    server.faults.clear()
    await client.embeddings.create(model="e", input="text")


async def test_the_dialect_can_change_while_it_runs(
    server: ModelApiServer, client: AsyncOpenAI
) -> None:
    server.dialect = Dialect(api_key="another")
    with pytest.raises(openai.AuthenticationError):
        await ask(client)
    server.dialect = Dialect()
    assert await ask(client) == TEXT


def test_faults_come_in_their_order_one_to_a_request() -> None:
    faults = Faults()
    limited, broken = rate_limited(), server_error()
    faults.add(limited, times=2)
    faults.add(broken)
    taken = [faults.take(CHAT) for _ in range(4)]
    assert taken == [(limited,), (limited,), (broken,), ()]


def test_quirks_come_together_and_with_a_fault() -> None:
    faults = Faults()
    for fault in (Quirk.CRLF, StreamBreak.CUT, Quirk.COMMENTS):
        faults.add(fault)
    assert faults.take(STREAMED_CHAT) == (Quirk.CRLF, StreamBreak.CUT, Quirk.COMMENTS)
    assert faults.take(STREAMED_CHAT) == ()


@pytest.mark.parametrize("request_", [CHAT, EMBEDDINGS])
def test_a_fault_for_streams_waits_for_a_stream(request_: ApiRequest) -> None:
    faults = Faults()
    faults.add(StreamBreak.CUT, when=lambda _: True)
    assert faults.take(request_) == ()
    assert faults.take(STREAMED_CHAT) == (StreamBreak.CUT,)


def test_a_fault_for_chat_requests_does_not_hit_embeddings() -> None:
    faults = Faults()
    faults.add(Break.HANG)
    assert faults.take(EMBEDDINGS) == ()
    assert faults.take(CHAT) == (Break.HANG,)
