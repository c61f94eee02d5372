"""Who may open the inspector, by a bearer token or by a form and its cookie."""

from typing import Any, ClassVar

import httpx2
import pytest
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from structlog.testing import capture_logs

from bot.features.inspector.page import PATH, LivePage, SignIn
from bot.features.inspector.probes import PROBES
from memory.memory import Memory
from memory.store.store import Store
from tests.lab.simulated_time import SimulatedClock
from tests.settings import Settings

TOKEN = "a-token-of-the-operator"
BOT_TOKEN = "42:made_up"
OWN = "http://bot"


class Page(LivePage):
    """The page behind its checks, without what it shows."""

    def __init__(self, sign_in: SignIn) -> None:
        nothing: Any = None
        super().__init__(nothing, nothing, sign_in)

    async def _state(self, _: Request) -> Response:
        return Response()


class Door:
    """A page, and callers of it; all doors have one store."""

    store: ClassVar[Store]

    def __init__(self, token: str = TOKEN, bot_token: str = BOT_TOKEN) -> None:
        self.clock = SimulatedClock()
        page = Page(SignIn(token, bot_token, self.store, self.clock))
        self.app = Router([Route(PATH, page.answer, methods=["GET", "POST"])])

    def caller(self, host: str = "203.0.113.9", base_url: str = OWN) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(self.app, client=(host, 5))
        return httpx2.AsyncClient(transport=transport, base_url=base_url)

    async def get(self, bearer: str = "", host: str = "203.0.113.9", cookie: str = "") -> int:
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        headers |= {"Cookie": cookie} if cookie else {}
        async with self.caller(host) as caller:
            return (await caller.get(PATH, headers=headers)).status_code

    async def post(
        self, token: str = TOKEN, origin: str = OWN, base_url: str = OWN, **headers: str
    ) -> httpx2.Response:
        headers |= {"Origin": origin} if origin else {}
        async with self.caller(base_url=base_url) as caller:
            return await caller.post(PATH, data={"token": token}, headers=headers)


@pytest.fixture(autouse=True)
def stored(memory: Memory) -> None:
    Door.store = memory.store


@pytest.mark.parametrize("host", ["203.0.113.9", "127.0.0.1", "::1"])
async def test_only_callers_with_the_token_come_in_also_from_this_machine(host: str) -> None:
    door = Door()
    assert await door.get(host=host) == 401
    assert await door.get("guess", host) == 401
    assert await door.get(TOKEN + "x", host) == 401
    assert await door.get(TOKEN, host) == 200


async def test_the_form_sets_a_cookie_that_only_this_site_sends_and_no_script_reads() -> None:
    answer = await Door().post()
    set_cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=strict", f"Path={PATH}", "Max-Age=28800"):
        assert part in set_cookie
    assert "Secure" not in set_cookie
    assert TOKEN not in set_cookie


async def test_over_tls_the_cookie_is_never_sent_without_it() -> None:
    proxied = await Door().post(**{"X-Forwarded-Proto": "https"})
    for answer in (proxied, await Door().post(origin="https://bot", base_url="https://bot")):
        assert "Secure" in answer.headers["set-cookie"]


async def test_a_cookie_opens_the_page_until_its_time_is_over() -> None:
    door = Door()
    cookie = (await door.post()).headers["set-cookie"].partition(";")[0]
    assert await door.get(cookie=cookie) == 200
    door.clock.now += 8 * 3600 + 1
    assert await door.get(cookie=cookie) == 401


async def test_a_cookie_with_another_time_or_of_another_token_opens_nothing() -> None:
    cookie = (await Door().post()).headers["set-cookie"].partition(";")[0]
    name, _, value = cookie.partition("=")
    until, _, proof = value.partition(".")
    later = f"{name}={int(until) + 1}.{proof}"
    for forged in (later, f"{name}={until}.", f"{name}=.", f"{name}=x.{proof}", f"{name}={TOKEN}"):
        assert await Door().get(cookie=forged) == 401
    assert await Door(token="another").get(cookie=cookie) == 401
    assert await Door(bot_token="43:made_up").get(cookie=cookie) == 401


@pytest.mark.parametrize(
    "origin", ["", "null", "http://evil.example", "http://bot.evil.example", "http://[::1"]
)
async def test_a_form_of_another_site_is_refused_even_with_the_token(origin: str) -> None:
    answer = await Door().post(origin=origin)
    assert (answer.status_code, answer.headers.get("set-cookie")) == (403, None)
    assert (await Door().post("x" * 5_000)).status_code == 403  # it is too long


async def test_after_ten_wrong_tokens_a_caller_waits_five_minutes() -> None:
    door = Door()
    with capture_logs() as logged:
        assert {await door.get("guess") for _ in range(10)} == {401}
        assert {await door.get("guess") for _ in range(30)} == {429}
    assert len(logged) == 10
    assert await door.get("guess", "198.51.100.7") == 401
    door.clock.now += 301
    assert await door.get("guess") == 401


async def test_wrong_tokens_never_lock_out_the_right_one() -> None:
    """Behind a router all callers have one address."""
    door = Door()
    cookie = (await door.post()).headers["set-cookie"].partition(";")[0]
    assert {await door.get("guess") for _ in range(200)} == {401, 429}
    assert (await door.get(TOKEN), await door.get(cookie=cookie)) == (200, 200)
    assert (await door.post()).status_code == 303
    assert (await door.post("guess")).status_code == 429


async def test_a_copied_cookie_opens_nothing_after_signing_out_also_after_a_restart() -> None:
    door = Door()
    cookie, other = [(await door.post()).headers["set-cookie"].partition(";")[0] for _ in range(2)]
    assert cookie != other
    for signed_out in (cookie, cookie, "inspector=1.x"):
        async with door.caller() as caller:
            out = {"Origin": OWN, "Cookie": signed_out}
            await caller.post(PATH, data={"out": "1"}, headers=out)
    for each in (door, Door()):
        assert [await each.get(cookie=cookie), await each.get(cookie=other)] == [401, 200]


async def test_many_callers_together_guess_at_most_a_hundred_tokens_in_five_minutes() -> None:
    door = Door()
    found = [await door.get("guess", f"10.0.0.{host}") for host in range(101)]
    assert (found.count(401), found[-1]) == (100, 429)


async def test_a_token_of_the_inspector_that_can_be_guessed_gets_a_warning() -> None:
    for token, verdict, seen in (
        (None, "ok", "off"),
        ("short", "warn", "guessed"),
        ("a" * 40, "warn", "guessed"),
        ("8f14e45fceea167a5a36dedd4bea2543", "ok", "on at /inspect"),
    ):
        settings = Settings(inspector_token=SecretStr(token) if token else None)
        [row] = [row async for row in PROBES[0].run(settings)]
        assert (row.verdict, seen in row.seen) == (verdict, True)
        assert token is None or token not in str(row)
