"""An attacker who knows no secret cannot stop the bot through the web port."""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, Router
from starlette.types import Message, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bot.runtime.process import raise_file_limit
from bot.runtime.web import MAX_CONNECTIONS, WebServer, ignore_disconnects

HERE = "127.0.0.1"
SOON_S = 60.0

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def here(_: Request) -> PlainTextResponse:
    return PlainTextResponse("here")


async def read(request: Request) -> PlainTextResponse:
    return PlainTextResponse(await request.body())


@asynccontextmanager
async def connected(server: WebServer, sent: bytes) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection(HERE, server.port)
    writer.write(sent)
    try:
        yield reader, writer
    finally:
        writer.close()


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """Return the bytes that the server sent before it closed."""
    answer = b""
    async with asyncio.timeout(SOON_S):
        try:
            while piece := await reader.read(2**16):
                answer += piece
        except ConnectionResetError:
            pass
    return answer


@asynccontextmanager
async def serving(*routes: Route) -> AsyncIterator[WebServer]:
    server = WebServer(routes, port=0, host=HERE)
    async with server.serving():
        yield server


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    posted = Route("/", here, methods=["GET", "POST"]), Route("/read", read, methods=["POST"])
    async with serving(*posted) as server:
        yield server


async def endless(written: list[int], ended: asyncio.Event, _: Request) -> StreamingResponse:
    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                written.append(2**14)
                yield b"a" * 2**14
                await asyncio.sleep(0)
        finally:
            ended.set()

    return StreamingResponse(pieces())


def calling(server: WebServer) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=f"http://{HERE}:{server.port}")


async def is_served(server: WebServer) -> bool:
    async with calling(server) as caller:
        return (await caller.get("/", timeout=SOON_S)).text == "here"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n",
        b"GET / HTTP/1.1\r\nHost: bot\r\n",
        b"POST / HTTP/1.1\r\nHost: bot\r\nContent-Length: 10\r\n\r\n12345",
        b"POST / HTTP/1.1\r\nHost: bot\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: 1\r\n",
        b"GET / HTTP/1.1\r\nHost: bot\r\n\r\nGET / HTTP/1.1\r\nHost: b",
    ],
    ids=["nothing", "line end", "headers", "body", "trailers", "second request"],
)
async def test_a_connection_without_a_complete_request_is_closed(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr("bot.runtime.web.CALLER_S", 0.05)
    async with connected(server, sent) as (reader, _):
        await until_closed(reader)
    monkeypatch.undo()
    assert await is_served(server)


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"GET / HTTP/1.1\r\n", b"X-Endless: and so on\r\n"),
        (b"GET / HTTP/1.1\r\nX-Endless: ", b"a"),
        (b"GET /", b"a"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Endless: so on\r\n"),
    ],
    ids=["headers", "one header", "address", "trailers"],
)
async def test_endless_headers_are_refused(server: WebServer, start: bytes, more: bytes) -> None:
    async with connected(server, start) as (reader, writer):
        closed = asyncio.create_task(until_closed(reader))
        sent = 0
        while not closed.done():
            writer.write(more * 1_000)
            sent += len(more) * 1_000
            assert sent < 2**22, "four megabytes of headers were read"
            drained: asyncio.Future[Any] = asyncio.gather(writer.drain(), return_exceptions=True)
            either = {drained, closed}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)
        assert b"400" in await closed
    assert await is_served(server)


async def test_a_body_in_pieces_of_one_byte_is_refused_soon(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 43,000 pieces of one read hold the loop for 0.14 s."""
    taken: list[bytes] = []
    monkeypatch.setattr(HttpToolsProtocol, "on_body", lambda _, body: taken.append(body))
    request = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 40_000
    async with connected(server, request) as (reader, _):
        await until_closed(reader)
    async with connected(server, request[:-240_000]) as (reader, writer):
        await reader.readuntil(b"here")
        writer.write(request[-15_000:])
        assert b"sizes of chunks are too long" in await until_closed(reader)
    assert len(taken) < 6_000
    assert await is_served(server)


async def test_a_long_body_in_packets_of_usual_size_is_read(server: WebServer) -> None:
    """Pieces of usual size are not refused, however many they are."""
    packet = b"5a8\r\n" + b"a" * 1_448 + b"\r\n"
    request = b"POST /read HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with connected(server, request) as (reader, writer):
        for _ in range(2_500):
            writer.write(packet)
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        assert b" 200 " in await reader.readline()


@pytest.mark.parametrize(("count", "status"), [(100, b"200"), (101, b"400")])
async def test_a_request_has_at_most_a_hundred_headers(
    server: WebServer, count: int, status: bytes
) -> None:
    """On 256 connections, 64 kB of headers of four bytes each take 500 MB."""
    request = b"GET / HTTP/1.1\r\n" + b"a:\r\n" * count + b"Connection: close\r\n\r\n"
    async with connected(server, request.replace(b"a:\r\n", b"", 1)) as (reader, _):
        assert (await until_closed(reader)).split()[1] == status


async def test_held_connections_do_not_keep_others_out(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest idle connection is closed for a new one, so that file descriptors remain."""
    monkeypatch.setattr("bot.runtime.web.CALLER_S", 10 * SOON_S)
    monkeypatch.setattr("bot.runtime.web.MAX_CONNECTIONS", 8)
    held = [await asyncio.open_connection(HERE, server.port) for _ in range(40)]
    for _, writer in held:
        writer.write(b"GET / HTTP/1.1\r\nHost: b")
    assert await is_served(server)
    closed = await asyncio.gather(*(until_closed(reader) for reader, _ in held[:31]))
    assert len(closed) == 31
    for _, writer in held:
        writer.close()


async def test_a_second_request_before_the_answer_closes_the_connection() -> None:
    """By itself, uvicorn keeps all that come: 8.6 MB of requests take 560 MB."""
    calls: list[Request] = []

    async def counted(request: Request) -> PlainTextResponse:
        calls.append(request)
        return PlainTextResponse("here")

    async with serving(Route("/", counted)) as server:
        async with connected(server, b"GET / HTTP/1.1\r\n\r\n" * 10_000) as (reader, _):
            assert b"400" not in await until_closed(reader)
        assert len(calls) <= 1
        assert await is_served(server)


async def test_one_request_after_another_is_served_on_one_connection(server: WebServer) -> None:
    async with connected(server, b"") as (reader, writer):
        for _ in range(20):
            writer.write(b"GET / HTTP/1.1\r\nHost: bot\r\n\r\n")
            assert (await reader.readuntil(b"here")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("headers", [b"", b"Connection: close\r\n"], ids=["open", "closing"])
async def test_an_unread_answer_ends(monkeypatch: pytest.MonkeyPatch, headers: bytes) -> None:
    """The system keeps at most 1 MB of it; by default it would keep 4 MB for each connection."""
    monkeypatch.setattr("bot.runtime.web.CALLER_S", 0.5)
    ended = asyncio.Event()
    written: list[int] = []
    request = b"GET / HTTP/1.1\r\n" + headers + b"\r\n"
    async with (
        serving(Route("/", partial(endless, written, ended))) as server,
        connected(server, request),
    ):
        async with asyncio.timeout(SOON_S):
            await ended.wait()
    assert sum(written) < 2**20


async def test_unread_answers_do_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.runtime.web.MAX_CONNECTIONS", 8)

    async def long(_: Request) -> StreamingResponse:
        return StreamingResponse(iter(["a" * 2**22, "the end"]))

    request = b"GET /long HTTP/1.1\r\n\r\n"
    routes = Route("/long", long), Route("/", here)
    async with serving(*routes) as server, AsyncExitStack() as held:
        for _ in range(12):
            reader, _ = await held.enter_async_context(connected(server, request))
            await reader.readexactly(1)
        assert await is_served(server)


async def test_a_request_in_progress_is_never_closed_for_a_new_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bot.runtime.web.MAX_CONNECTIONS", 2)
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Request) -> PlainTextResponse:
        began.set()
        await go_on.wait()
        return PlainTextResponse("done")

    async with serving(Route("/slow", slow), Route("/", here)) as server, calling(server) as caller:
        answer = asyncio.create_task(caller.get("/slow"))
        await began.wait()
        async with connected(server, b"GET / HT"), connected(server, b"GET / HT"):
            assert await is_served(server)
        go_on.set()
        assert (await answer).text == "done"


async def test_a_caller_that_disconnects_early_leaves_no_traceback() -> None:
    caller = SimpleNamespace(cycle=SimpleNamespace(disconnected=False))

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        raise RuntimeError("the handler is closed")  # as uvloop says it

    scope: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    scope["extensions"] = {"bot.connection": {"protocol": caller}}
    await ignore_disconnects(Router([Route("/", here)]))(scope, receive, send)
    assert caller.cycle.disconnected


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /read HTTP/1.1\r\nHost: bot\r\nContent-Length: 10\r\n\r\n12345",
        b"GET / HTTP/1.1\r\nHost: bot\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"\x16\x03\x01",
    ],
    ids=["half a body", "upgrade", "not HTTP"],
)
async def test_no_caller_writes_into_the_log(
    server: WebServer, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    async with connected(server, sent) as (reader, writer):
        writer.write_eof()
        await until_closed(reader)
    assert [each.message for each in caplog.records if each.name.startswith("uvicorn")] == []


async def test_no_header_decides_where_a_call_comes_from_or_is_sent_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Heroku sets this variable, and uvicorn then trusts the header of any caller."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")

    async def who(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.client.host if request.client else "")

    async with serving(Route("/", who), Route("/else", who)) as server, calling(server) as caller:
        answer = await caller.get("/", headers={"X-Forwarded-For": "203.0.113.5"})
        other = await caller.get("/else/", headers={"Host": "evil.example"})
    assert answer.text == HERE
    assert other.status_code == 404


def test_callers_leave_file_descriptors_for_our_own_calls() -> None:
    """Many systems start a process with 1,024 descriptors, and callers could use all of them."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        raise_file_limit()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert soft == min(hard, 65_536)
    assert soft > 2 * MAX_CONNECTIONS
