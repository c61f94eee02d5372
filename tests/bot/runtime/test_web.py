"""The web server and the health pages."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router

from bot.runtime.web import PortUnavailable, WebServer, health_routes
from bot.telegram.bot_api import BotIdentity
from bot.telegram.connection import TelegramHealth
from memory.store.client import RedisClient
from tests.valkey import ValkeyServer

ME = BotIdentity(42, "ricordo_bot", "Ricordo", can_read_all_group_messages=False)
READY = TelegramHealth(identity=ME, webhook_set=True)
HERE = "127.0.0.1"


def caller_of(store: RedisClient, health: TelegramHealth, **options: Any) -> httpx2.AsyncClient:
    app = Router(health_routes(store, health, **{"has_webhook": True, **options}))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://bot")


async def pages(
    store: RedisClient, health: TelegramHealth = READY, **options: Any
) -> tuple[int, dict[str, object]]:
    """Return status and content of `/readyz`; check that `/healthz` answers ok."""
    async with caller_of(store, health, **options) as caller:
        alive = await caller.get("/healthz")
        assert (alive.status_code, alive.text) == (200, "ok")
        ready = await caller.get("/readyz")
        return ready.status_code, ready.json()


@pytest.mark.parametrize(
    ("health", "has_webhook", "said"),
    [
        (READY, True, "ok"),
        (TelegramHealth(identity=ME), False, "ok"),
        (TelegramHealth(identity=ME), True, "webhook not set yet"),
        (TelegramHealth(), True, "not reached yet"),
        (TelegramHealth(last_error="Unreachable"), True, "not reached: Unreachable"),
        (TelegramHealth(identity=ME, webhook_set=True, last_error="Conflict"), True, "Conflict"),
    ],
)
async def test_the_bot_is_ready_if_telegram_is_or_says_what_is_wrong(
    store: RedisClient, health: TelegramHealth, said: str, *, has_webhook: bool
) -> None:
    status, body = await pages(store, health, has_webhook=has_webhook)
    expected = 200 if said == "ok" else 503
    assert (status, body["redis"], body["telegram"]) == (expected, "ok", said)


async def test_a_redis_that_may_evict_keys_is_not_ready(store: RedisClient) -> None:
    await store.call("CONFIG SET", "maxmemory-policy", "allkeys-lru")
    try:
        status, body = await pages(store)
    finally:
        await store.call("CONFIG SET", "maxmemory-policy", "noeviction")
    told = "maxmemory-policy is allkeys-lru, must be noeviction"
    assert (status, body["redis"]) == (503, told)


async def test_a_redis_with_too_few_replicas_is_not_ready(store: RedisClient) -> None:
    status, body = await pages(store, wait_replicas=1)
    assert (status, body["redis"]) == (503, "0 replicas are connected, INTAKE_WAIT_REPLICAS is 1")


async def test_a_redis_that_is_away_is_not_ready(own_server: ValkeyServer) -> None:
    store = await RedisClient.open(own_server.url)
    own_server.kill()
    status, body = await pages(store)
    assert (status, body["redis"]) == (503, "unreachable")
    await store.close()


async def test_many_requests_at_once_cost_one_check_of_redis(store: RedisClient) -> None:
    """The page is public, and the bot's own calls would wait behind each check."""
    before = store.round_trips
    async with caller_of(store, READY) as caller:
        answers = await asyncio.gather(*(caller.get("/readyz") for _ in range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert store.round_trips - before == 2


@asynccontextmanager
async def serving(server: WebServer) -> AsyncIterator[httpx2.AsyncClient]:
    base_url = f"http://{HERE}:{server.port}"
    async with server.serving(), httpx2.AsyncClient(base_url=base_url) as caller:
        yield caller


async def test_unknown_pages_wrong_methods_and_errors_have_their_status() -> None:
    async def broken(_: Request) -> PlainTextResponse:
        raise ValueError("a secret")

    server = WebServer([Route("/", broken)], port=0, host=HERE)
    async with serving(server) as caller:
        nowhere, otherwise = await caller.get("/nowhere"), await caller.post("/")
        wrong = await caller.get("/")
    assert [nowhere.status_code, otherwise.status_code, wrong.status_code] == [404, 405, 500]
    assert "secret" not in wrong.text


async def test_a_running_request_is_finished_when_the_server_stops() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Request) -> PlainTextResponse:
        began.set()
        await go_on.wait()
        return PlainTextResponse("done")

    server = WebServer([Route("/", slow)], port=0, host=HERE)
    async with serving(server) as caller:
        call = asyncio.create_task(caller.get("/"))
        await began.wait()
        server._server.stopping.set()
        go_on.set()
        assert (await call).text == "done"


async def test_the_process_keeps_its_own_signal_handlers() -> None:
    """Uvicorn would handle SIGTERM and end the process during a turn."""
    loop, signalled = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, signalled.set)
    try:
        async with serving(WebServer([], port=0, host=HERE)) as caller:
            os.kill(os.getpid(), signal.SIGTERM)
            await signalled.wait()
            assert (await caller.get("/")).headers["date"].endswith(" GMT")
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def test_a_port_in_use_is_named() -> None:
    first = WebServer([], port=0, host=HERE)
    async with serving(first):
        with pytest.raises(PortUnavailable, match=f"cannot listen on port {first.port}: Address"):
            WebServer([], port=first.port, host=HERE)


async def test_readyz_shows_the_last_updates_age_and_the_last_error(store: RedisClient) -> None:
    health = TelegramHealth(clock=lambda: 1_000.0)
    nothing = {"last_update_s_ago": None, "webhook_error": "", "webhook_error_s_ago": None}
    states = {"redis": "ok", "telegram": "not reached yet"}
    assert (await pages(store, health))[1] == states | nothing
    health.last_update_at, health.webhook_error_at = 940.0, 400.0
    shown = {"last_update_s_ago": 60, "webhook_error": "delivery failed"}
    assert (await pages(store, health))[1] == states | shown | {"webhook_error_s_ago": 600}
