"""The webhook page accepts calls with the secret and answers 200 only for stored updates."""

from collections.abc import AsyncIterator, MutableMapping

import httpx2
import pytest
from starlette.routing import Router

from bot.telegram.errors import NotAccepted
from bot.telegram.telegram import webhook_routes
from tests.bot.telegram.doubles import Mailbox

SECRET = "s3cret"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
async def telegram(mailbox: Mailbox) -> AsyncIterator[httpx2.AsyncClient]:
    app = Router(webhook_routes(SECRET, mailbox.accept))
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app), base_url="http://bot", headers={HEADER: SECRET}
    ) as caller:
        yield caller


async def test_an_update_is_accepted_and_then_acknowledged_even_with_a_lone_surrogate(
    telegram: httpx2.AsyncClient, mailbox: Mailbox
) -> None:
    answer = await telegram.post("/telegram", content=b'{"update_id": 1, "text": "\\ud83d"}')
    assert answer.status_code == 200
    assert mailbox.taken == [{"update_id": 1, "text": "\ufffd"}]


@pytest.mark.parametrize("given", [None, b"", b"S3cret", b"s3cret2", b"\xff"])
async def test_a_call_without_the_secret_is_refused_unread(
    mailbox: Mailbox, given: bytes | None
) -> None:
    (route,) = webhook_routes(SECRET, mailbox.accept)
    sent: list[MutableMapping[str, object]] = []

    async def receive() -> MutableMapping[str, object]:
        raise AssertionError("the body was asked for")

    async def send(message: MutableMapping[str, object]) -> None:
        sent.append(message)

    headers = [] if given is None else [(HEADER.lower().encode(), given)]
    scope = {"type": "http", "method": "POST", "path": "/telegram", "headers": headers}
    await route.app(scope, receive, send)
    assert (sent[0]["status"], mailbox.taken) == (403, [])


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"null", b"\xff", b'"text"', b"[" * 90_000])
async def test_a_body_that_is_not_a_json_object_is_a_bad_request(
    telegram: httpx2.AsyncClient, mailbox: Mailbox, body: bytes
) -> None:
    answer = await telegram.post("/telegram", content=body)
    assert (answer.status_code, mailbox.taken) == (400, [])


async def test_an_update_of_too_many_values_is_taken_and_not_read(
    telegram: httpx2.AsyncClient, mailbox: Mailbox
) -> None:
    """Telegram would send it again and again, and a megabyte of objects held the loop for 0.3 s."""
    answer = await telegram.post("/telegram", content=b'{"x": [' + b"{}," * 200_000 + b"0]}")
    assert (answer.status_code, mailbox.taken) == (200, [{}])


async def test_a_body_of_more_than_a_megabyte_is_refused_without_an_announced_length(
    telegram: httpx2.AsyncClient, mailbox: Mailbox
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(101):
            yield b" " * 10_000

    answer = await telegram.post("/telegram", content=chunks())
    assert (answer.status_code, mailbox.taken) == (413, [])


async def test_an_update_that_cannot_be_stored_now_stays_with_telegram(
    telegram: httpx2.AsyncClient, mailbox: Mailbox
) -> None:
    mailbox.failures = [NotAccepted()]
    answer = await telegram.post("/telegram", json={"update_id": 1})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")


async def test_only_post_requests_are_allowed(telegram: httpx2.AsyncClient) -> None:
    assert (await telegram.get("/telegram")).status_code == 405
