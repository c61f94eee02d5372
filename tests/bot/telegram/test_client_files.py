"""Files are fetched from Telegram's server alone, never more of them than was asked for."""

import pytest

from bot.telegram.client import TelegramClient
from bot.telegram.errors import OutcomeUnknown, Refused, Unreachable
from tests.bot.telegram.scripted_api import TOKEN, Act, Reply, ScriptedApi, ok, refusal

HERE = ok({"file_id": "f", "file_unique_id": "u", "file_path": "documents/file_1.pdf"})


async def test_a_file_is_asked_for_and_fetched(client: TelegramClient, api: ScriptedApi) -> None:
    api.script(HERE, Reply(b"content"))
    assert await client.download("f", 7) == b"content"
    assert [call.method for call in api.calls] == ["getFile", "file_1.pdf"]


async def test_more_than_asked_for_is_not_taken_in(
    client: TelegramClient, api: ScriptedApi
) -> None:
    api.script(HERE, Reply(b"content"))
    with pytest.raises(Refused, match="too_big"):
        await client.download("f", 6)


async def test_what_says_that_it_is_too_big_is_not_fetched(
    client: TelegramClient, api: ScriptedApi
) -> None:
    described = {"file_id": "f", "file_unique_id": "u", "file_size": 8, "file_path": "x"}
    api.script(ok(described), refusal(400, "Bad Request: file is too big"))
    for _ in range(2):
        with pytest.raises(Refused, match="too_big"):
            await client.download("f", 7)
    assert [call.method for call in api.calls] == ["getFile", "getFile"]


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_a_file_that_is_not_there_is_refused_and_no_redirect_followed(
    client: TelegramClient, api: ScriptedApi, status: int
) -> None:
    api.script(HERE, Reply(b"Location", status))
    with pytest.raises(Refused, match="other"):
        await client.download("f", 7)
    assert len(api.calls) == 2


@pytest.mark.parametrize("act", ["cut", "hang"])
async def test_a_broken_or_endless_transfer_is_an_error_that_names_no_token(
    client: TelegramClient, api: ScriptedApi, act: Act
) -> None:
    api.script(HERE, act)
    with pytest.raises(OutcomeUnknown) as error:
        await client.download("f", 7, timeout_s=0.5)
    assert TOKEN not in f"{error.value!r} {error.value.__cause__!r}"


async def test_a_server_that_is_away_is_unreachable() -> None:
    client = TelegramClient(TOKEN, "http://127.0.0.1:1")
    with pytest.raises(Unreachable):
        await client.download("f", 7)
    await client.close()
