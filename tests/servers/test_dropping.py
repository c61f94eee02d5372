import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.servers.dropping import DroppingServer, drop_connection

CUT = (httpx2.RemoteProtocolError, httpx2.ReadError)
"""A connection that ended too early, or was reset: which of them is the kernel's choice."""


async def test_a_handler_can_drop_its_connection_before_and_while_it_answers() -> None:
    async def drop(request: Request) -> Response:
        await drop_connection(request)
        return PlainTextResponse("never")

    async def half(request: Request) -> Response:
        async def parts() -> AsyncIterator[bytes]:
            yield b"half"
            await drop_connection(request)

        return StreamingResponse(parts())

    app = Starlette(routes=[Route("/drop", drop), Route("/half", half)])
    async with DroppingServer(app) as server, httpx2.AsyncClient(base_url=server.url) as client:
        with pytest.raises(CUT, match=r"^$|without sending a response"):  # a reset says nothing
            await client.get("/drop")
        with pytest.raises(CUT, match=r"^$|incomplete"):
            await client.get("/half")


async def test_stopping_cuts_what_hangs_and_frees_the_port() -> None:
    hanging = asyncio.Event()

    async def hang(_: Request) -> None:
        hanging.set()
        await asyncio.Event().wait()

    app = Starlette(routes=[Route("/hang", hang)])
    async with DroppingServer(app) as server, httpx2.AsyncClient(base_url=server.url) as client:
        asked = asyncio.create_task(client.get("/hang"))
        await hanging.wait()
        await server.stop()
        with pytest.raises(CUT):
            await asked
        async with DroppingServer(app, server.port) as next_server:
            assert next_server.port == server.port
