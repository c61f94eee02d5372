"""A hostile model server can use only a bounded part of the bot's time and memory."""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import cache
from itertools import chain, repeat

import pytest

from bot.features.drawing.feature import Drawer
from bot.features.voice.servers import Transcriber
from bot.model.call import ModelReply, ModelRequest, PromptMessage
from bot.model.chat_model import ChatParameters, OpenAIChatModel
from bot.model.embedder import OpenAIEmbedder
from bot.model.model_errors import AnswerIncomplete, ModelError, NotAModel
from bot.model.openai_client import ModelClient, open_client
from bot.model.structured import StructuredModel
from memory.search.embeddings import EmbeddingsUnavailable
from tests.bot.model.internal_calls import fill
from tests.servers.web_site import ANY, Body, Site

HELLO = (PromptMessage("user", "hello"),)
LIMIT_S = 20
MAX_TIMES_HELD = 10
"""No answer blocks the loop for longer than parsing one mebibyte of JSON ten times."""
REPLY_TOKENS = 1_000

MB = 2**20
STREAM = "Content-Type: text/event-stream\r\n"
JSON = "Content-Type: application/json\r\n"
PACKED = "Content-Encoding: gzip\r\n"


@asynccontextmanager
async def serving(body: Body, headers: str = STREAM, status: str = "200 OK") -> AsyncIterator[Site]:
    """Yield a model server that gives the same answer to every request."""
    async with Site() as site:
        site.put(ANY, body, headers, status)
        yield site


def base_url(site: Site) -> str:
    return site.at("/v1", "127.0.0.1")


def event(**chunk: object) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def delta(**delta: object) -> bytes:
    return event(choices=[{"index": 0, "delta": delta}])


def call(number: int, arguments: str = "{}") -> bytes:
    function = {"name": "clock", "arguments": arguments}
    return delta(tool_calls=[{"index": number, "id": f"id-{number}", "function": function}])


def mebibytes(count: int, of: bytes) -> Iterable[bytes]:
    return repeat(of * (MB // 16 // len(of)), 16 * count)


def end(reason: str) -> bytes:
    return event(choices=[{"index": 0, "delta": {}, "finish_reason": reason}]) + b"data: [DONE]\n\n"


async def ask(base_url: str, api: str = "chat") -> ModelReply:
    async with open_client(base_url, None, 5, api=api) as client:  # type: ignore[arg-type]
        model = OpenAIChatModel(client, "gpt-test", LIMIT_S, ChatParameters(REPLY_TOKENS))
        return await model.complete(ModelRequest(HELLO))


@cache
def gzipped() -> bytes:
    return gzip.compress(b"data: " + b"a" * (64 * MB))


@asynccontextmanager
async def watched() -> AsyncIterator[None]:
    """Fail if one step of the loop took too much CPU, compared with parsing JSON here."""
    held = [0.0]
    gzipped()  # what the server sends is made before
    objects = b"[" + b"{}," * (MB // 3) + b"{}]"
    began = time.thread_time()
    json.loads(objects)
    reading = time.thread_time() - began

    async def watch() -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.002)
            held.append(time.thread_time() - began)

    watching = asyncio.create_task(watch())
    try:
        yield
        await asyncio.sleep(0.01)  # the last step is one, too
    finally:
        watching.cancel()
    assert max(held) < MAX_TIMES_HELD * reading


LONG_CALL = call(0, "a" * 100_000)
DEEP = b"[" * 500_000
STREAMS: dict[str, tuple[Body, str]] = {
    "a line without an end": (lambda: mebibytes(150, b"data"), ""),
    "lines without an event": (lambda: mebibytes(150, b"data: and on and on\n"), ""),
    "small pieces of a line": (lambda: repeat(b"x" * 100, 200_000), ""),
    "an event of nothing but objects": (lambda: [b"data: [", b"{}," * (MB // 3), b"{}]\n\n"], ""),
    "deep nesting": (lambda: [b"data: ", DEEP, b"\n\n"], ""),
    "a number of 100,000 digits": (lambda: [b'data: {"usage":', b"9" * 100_000, b"}\n\n"], ""),
    "a gzip bomb": (lambda: [gzipped()], PACKED),
    "thoughts without an end": (
        lambda: repeat(delta(reasoning_content="hm " * 100) * 50, 10_000),
        "",
    ),
    "arguments without an end": (lambda: chain([call(0)], repeat(LONG_CALL, 2_000)), ""),
    "comments without an end": (lambda: mebibytes(150, b": still thinking about that\n\n"), ""),
}


ALSO_RESPONSES = ("an event of nothing but objects", "deep nesting", "thoughts without an end")


@pytest.mark.parametrize(
    ("name", "api"),
    [*((name, "chat") for name in STREAMS), *((name, "responses") for name in ALSO_RESPONSES)],
)
async def test_a_stream_is_bounded(name: str, api: str) -> None:
    body, head = STREAMS[name]
    async with serving(body, STREAM + head) as server, watched():
        with pytest.raises((AnswerIncomplete, NotAModel)):
            await ask(base_url(server), api)
    assert server.sent_bytes < len(server.requests) * 48 * MB
    assert len(server.requests) <= 2


WORDS = {"chat": delta(content="word " * 100)}
WORDS["responses"] = event(type="response.output_text.delta", output_index=0, delta="word " * 100)


@pytest.mark.parametrize("api", WORDS)
async def test_text_is_read_up_to_four_times_the_limit_and_counts_as_cut(api: str) -> None:
    endless = repeat(WORDS[api] * 20, 100_000)
    async with serving(lambda: endless) as server, watched():
        reply = await ask(base_url(server), api)
    assert (len(reply.text), reply.finish_reason) == (16 * REPLY_TOKENS, "length")
    assert server.sent_bytes < 4 * MB


def item(number: int) -> bytes:
    called = {"type": "function_call", "call_id": f"id-{number}", "name": "f", "arguments": "{}"}
    return event(type="response.output_item.done", item=called)


@pytest.mark.parametrize(("api", "called"), [("chat", call), ("responses", item)])
async def test_only_the_first_32_of_ten_thousand_calls_are_read(
    api: str, called: Callable[[int], bytes]
) -> None:
    calls = [called(number) for number in range(10_000)]
    async with serving(lambda: calls) as server, watched():
        reply = await ask(base_url(server), api)
    assert [call.id for call in reply.tool_calls] == [f"id-{number}" for number in range(32)]
    assert reply.finish_reason == "tool_calls"


async def test_only_the_beginning_of_an_error_is_read() -> None:
    body = lambda: chain([b'{"error": {"message": "'], mebibytes(150, b"no. "))  # noqa: E731
    async with serving(body, JSON, "400 Bad Request") as server, watched():
        with pytest.raises(ModelError):
            await ask(base_url(server))
        # The sockets between us hold some bytes that are not read.
        assert server.sent_bytes < len(server.requests) * 4 * MB


@pytest.mark.parametrize("status", ["301 Moved", "307 Temporary Redirect", "308 Permanent"])
async def test_a_redirect_is_not_followed(status: str) -> None:
    async with (
        serving(lambda: [delta(content="Got you."), end("stop")]) as other,
        serving(list, f"Location: {base_url(other)}\r\n", status) as server,
    ):
        with pytest.raises(NotAModel):
            await ask(base_url(server))
        async with open_client(base_url(server), None, 5) as client:
            with pytest.raises(EmbeddingsUnavailable):
                await embedded(client)
            with pytest.raises(NotAModel):
                await fill(StructuredModel(client, "m", LIMIT_S))
    assert (len(server.requests), len(other.requests)) == (3, 0)


WHOLE: dict[str, tuple[Body, str]] = {
    "150 MB": (lambda: mebibytes(150, b" "), ""),
    "objects": (lambda: [b"[", b"{}," * (MB // 50), b"{}]"], ""),
    "deep nesting": (lambda: [DEEP[:60_000]], ""),
    "a gzip bomb": (lambda: [gzipped()], PACKED),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_an_answer_that_is_not_streamed_is_bounded(name: str) -> None:
    body, head = WHOLE[name]
    async with (
        serving(body, JSON + head) as server,
        watched(),
        open_client(base_url(server), None, 5) as client,
    ):
        with pytest.raises(ModelError):
            await fill(StructuredModel(client, "m", LIMIT_S))
        with pytest.raises(EmbeddingsUnavailable):
            await embedded(client)
    assert server.sent_bytes < len(server.requests) * 12 * MB


@asynccontextmanager
async def answering(body: bytes) -> AsyncIterator[ModelClient]:
    """Give a client of a server that answers every request with this JSON."""
    async with (
        serving(lambda: [body], JSON) as server,
        open_client(base_url(server), None, 5) as client,
    ):
        yield client


async def embedded(client: ModelClient) -> list[float]:
    [row] = await OpenAIEmbedder(client, "m", None, LIMIT_S).embed(["hello"])
    return [*map(float, row)]


async def test_a_vector_of_numbers_whose_squares_overflow_keeps_its_direction() -> None:
    """Zeros would count as embedded and would never be found."""
    async with answering(b'{"data": [{"index": 0, "embedding": [3e38, 3e38, 0, 0]}]}') as client:
        assert await embedded(client) == pytest.approx([0.5**0.5, 0.5**0.5, 0, 0])


@pytest.mark.parametrize("row", ["[]", "[1e39]", '"AACAfw=="', '"/////w=="'])
async def test_embeddings_without_finite_numbers_are_refused(row: str) -> None:
    """A row of NaN would match everything."""
    async with answering(f'{{"data": [{{"index": 0, "embedding": {row}}}]}}'.encode()) as client:
        with pytest.raises(EmbeddingsUnavailable):
            await embedded(client)


@pytest.mark.parametrize("text", [b"null", b"5", b'{"a": 1}', b'["a"]'])
async def test_a_transcript_that_is_no_text_is_refused(text: bytes) -> None:
    async with answering(b'{"text": ' + text + b"}") as client:
        with pytest.raises(NotAModel):
            await Transcriber(client, "m", LIMIT_S).words(b"OggS", "ogg")


@pytest.mark.parametrize("drawn", [b"null", b'""', b'"PHN2Zz4="', b'"AAAA"'])
async def test_a_drawing_that_is_no_picture_is_refused(drawn: bytes) -> None:
    async with answering(b'{"data": [{"b64_json": ' + drawn + b"}]}") as client:
        with pytest.raises(NotAModel):
            await Drawer(client, "m", LIMIT_S).picture("a dragon")
