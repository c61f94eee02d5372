import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.servers.dropping import DroppingServer, drop_connection

CUT = (httpx2.RemoteProtocolError, httpx2.ReadError)
"""A connection that ended too early, or was reset: which of them is the kernel's choice."""


class Handlers:
    """An application with a good page, a hanging one and two that drop their connection."""

    def __init__(self) -> None:
        self.hanging = asyncio.Event()
        self.app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/hang", self._hang),
                Route("/drop", self._drop, methods=["POST"]),
                Route("/half", self._half),
            ]
        )

    async def _page(self, _: Request) -> Response:
        return PlainTextResponse("here")

    async def _hang(self, _: Request) -> Response:
        self.hanging.set()
        await asyncio.Event().wait()
        return PlainTextResponse("never")

    async def _drop(self, request: Request) -> Response:
        await drop_connection(request)
        return PlainTextResponse("never")

    async def _half(self, request: Request) -> Response:
        async def parts() -> AsyncIterator[bytes]:
            yield b"half"
            await drop_connection(request)

        return StreamingResponse(parts())


@asynccontextmanager
async def served(handlers: Handlers) -> AsyncIterator[tuple[DroppingServer, httpx2.AsyncClient]]:
    async with (
        DroppingServer(handlers.app) as server,
        httpx2.AsyncClient(base_url=server.url, timeout=60) as client,
    ):
        yield server, client


async def test_it_answers_on_a_port_of_its_own() -> None:
    async with served(Handlers()) as (server, client):
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert (await client.get("/")).text == "here"


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "LOCALHOST:80", "[::1]:8080"])
async def test_requests_for_names_of_this_machine_are_answered(host: str) -> None:
    async with served(Handlers()) as (_, client):
        assert (await client.get("/", headers={"host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.", ""])
async def test_a_request_for_another_host_is_refused(host: str) -> None:
    async with served(Handlers()) as (_, client):
        assert (await client.get("/", headers={"host": host})).status_code == 400


async def test_a_taken_port_is_an_os_error() -> None:
    async with served(Handlers()) as (server, _):
        second = DroppingServer(Starlette(), server.port)
        with pytest.raises(OSError, match="in use"):
            await second.start()


async def test_a_handler_can_drop_its_connection_before_and_while_it_answers() -> None:
    async with served(Handlers()) as (_, client):
        with pytest.raises(CUT, match=r"^$|without sending a response"):  # a reset says nothing
            await client.post("/drop", json={})
        with pytest.raises(CUT, match=r"^$|incomplete"):
            await client.get("/half")


async def test_stopping_cuts_what_hangs_and_frees_the_port() -> None:
    handlers = Handlers()
    async with served(handlers) as (server, client):
        asked = asyncio.create_task(client.get("/hang"))
        await handlers.hanging.wait()
        await server.stop()
        with pytest.raises(CUT):
            await asked
        async with DroppingServer(handlers.app, server.port) as next_server:
            assert next_server.port == server.port


async def test_the_server_can_stop_and_start_again() -> None:
    async with served(Handlers()) as (server, client):
        port = server.port
        await server.stop()
        with pytest.raises(httpx2.ConnectError):
            await client.get("/")
        await server.start()
        assert (await client.get("/")).text == "here"
        assert server.port == port


async def test_stopping_twice_or_before_the_start_is_harmless() -> None:
    server = DroppingServer(Starlette())
    await server.stop()
    await server.start()
    await server.stop()
    await server.stop()
