"""The HTTP client of all calls to outside servers."""

import asyncio
import gc
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from threading import Thread
from weakref import ref

import httpx2
import pytest

from bot.features.mcp.outside_server import OutsideServer
from bot.features.mcp.settings import McpServer
from bot.http_client import HttpClient, read_json, read_within
from bot.model.call import ModelRequest, Post, PromptMessage
from bot.model.chat_model import OpenAIChatModel
from bot.model.model_errors import ModelError
from bot.model.openai_client import open_client
from bot.telegram.bot_api import TelegramClient
from bot.telegram.errors import TelegramError
from memory.behaviors.tool import ToolError
from tests.servers.web_site import ANY, Prepared, Site
from tests.work import longest_stretch

Call = Callable[[], Awaitable[object]]

CALLS = 1_000  # about one call in 300 met the error that the client corrects

RESET = struct.pack("ii", 1, 0)


async def test_a_connection_that_breaks_at_any_moment_is_an_httpx2_error() -> None:
    def reset_each() -> None:
        for _ in range(CALLS):
            connection, _ = server.accept()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.close()

    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        Thread(target=reset_each, daemon=True).start()
        async with HttpClient(trust_env=False, timeout=60) as client:
            for _ in range(CALLS):
                with pytest.raises(httpx2.TransportError):
                    await client.get(f"http://127.0.0.1:{server.getsockname()[1]}/")


async def test_a_body_that_ends_like_a_head_is_sent() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        sent.append((head[:4], await reader.readexactly(4)))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    sent: list[tuple[bytes, bytes]] = []
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()
        async with HttpClient(trust_env=False, timeout=20) as client:
            await client.post(f"http://127.0.0.1:{address[1]}/", content=b"\r\n\r\n")
    assert sent == [(b"POST", b"\r\n\r\n")]


@asynccontextmanager
async def model_call(url: str) -> AsyncIterator[Call]:
    async with open_client(url, None, timeout_s=60) as client:
        yield lambda: client.post_whole(Post("/x", {}), 2**20)


@asynccontextmanager
async def telegram_call(url: str) -> AsyncIterator[Call]:
    client = TelegramClient("42:TOKEN", url)
    yield client.delete_webhook
    await client.close()


@pytest.mark.parametrize(("calling", "body"), [(model_call, b"{}"), (telegram_call, b"=false")])
async def test_a_connection_that_the_server_may_be_closing_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
    calling: Callable[[str], AbstractAsyncContextManager[Call]],
    body: bytes,
) -> None:
    """A request that meets the end of an idle connection is lost, or would be sent twice."""
    connections, clock = 0, time.monotonic

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while (await reader.read(2**16)).endswith(body):  # it comes with its head
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{"result": true}')
        writer.close()

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as server,
        calling(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as call,
    ):
        for _ in range(2):
            await call()
        assert connections == 1
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 4.5)
        await call()
        assert connections == 2


async def test_a_body_in_tiny_pieces_is_too_long() -> None:
    sent = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        for sent in range(1, 100_000):  # noqa: B007 - it is read below
            yield b"a"

    assert (await read_within(pieces(), 50_000), sent) == (None, 1_501)


@asynccontextmanager
async def chat_call(url: str) -> AsyncIterator[Call]:
    async with open_client(url, None, timeout_s=60, api="chat") as client:
        model = OpenAIChatModel(client, "m", timeout_s=60)
        yield lambda: model.complete(ModelRequest((PromptMessage("user", "hello"),)))


@asynccontextmanager
async def tool_call(url: str) -> AsyncIterator[Call]:
    outside = OutsideServer(McpServer("shop", url), 60)
    yield lambda: outside.call("price", {})


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
FLOODS = {
    "early answers": (b"", b"HTTP/1.1 103 \r\n\r\n" * 1_800),
    "an error": (b"HTTP/1.1 400 Bad Request\r\n" + CHUNKED, b"1\r\n \r\n" * 10_000),
    "a body": (b"HTTP/1.1 200 OK\r\n" + CHUNKED, b"1\r\n:\r\n" * 10_000),
}
"""About what one read of a connection brings."""
CALLERS = (model_call, chat_call, telegram_call, tool_call)


@pytest.mark.parametrize(
    ("name", "calling"),
    [
        # One client passes them over for all calls; tools have a client of their own.
        *(("early answers", each) for each in (model_call, tool_call)),
        *(("an error", each) for each in CALLERS),
        *(("a body", each) for each in CALLERS),
    ],
)
async def test_others_go_on_whatever_a_server_sends(
    calling: Callable[[str], AbstractAsyncContextManager[Call]], name: str
) -> None:
    """Read in one step, 64 kB of early answers or of an error hold the loop for up to 0.8 s."""
    head, flood = FLOODS[name]
    async with Site() as site, calling(site.at("", "127.0.0.1")) as call:
        site.answers[ANY] = Prepared(head, lambda: [flood])

        async def fail() -> None:
            with pytest.raises((ModelError, TelegramError, ToolError)):
                await call()

        await fail()  # the first request loads more of the library
        assert await longest_stretch(fail()) < 0.2


async def test_a_closed_connection_is_let_go_without_the_garbage_collector() -> None:
    async with Site() as site, HttpClient(trust_env=False) as client:
        site.put(ANY, b"page")
        gc.disable()
        try:
            response = await client.get(site.at("/", "127.0.0.1"))
            stream = ref(response.extensions["network_stream"])
            del response
            assert stream() is None
        finally:
            gc.enable()


@pytest.mark.parametrize(
    ("head", "repeated"),
    [(b"", b"HTTP/1.1 103 \r\n\r\n"), (b"HTTP/1.1 200 OK\r\n", b"a:\r\n")],
    ids=["early answers", "headers"],
)
async def test_what_comes_before_each_body_is_bounded(head: bytes, repeated: bytes) -> None:
    answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", head + repeated * 20_000]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            for answer in answers:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as server,
        HttpClient(trust_env=False, timeout=60) as client,
    ):
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert (await client.get(url)).text == "{}"
        with pytest.raises(httpx2.RemoteProtocolError, match="too much comes before the body"):
            await client.get(url)


def test_json_is_read_with_odd_numbers_and_without_half_emoji() -> None:
    body = b'["\\ud83d\\ude00 \\ud83d", 1' + b"0" * 400 + b", [], 0]"
    assert read_json(body, 5) == ["\U0001f600 \ufffd", 10**400, [], 0]


@pytest.mark.parametrize("value", ["0,", "{},", "["])
def test_json_with_too_many_values_is_not_parsed(value: str) -> None:
    with pytest.raises(ValueError, match="too many values"):
        read_json(f"[{value * 6}".encode(), 5)
