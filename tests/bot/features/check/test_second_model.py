"""The second model has the same rows as the first, with the names of its own settings."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.features.check.chat_model import check_second
from tests.bot.features.check.front_reader import SMALL, FrontReader
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.model_api import ApiError, Dialect, ModelApiServer
from tests.settings import Settings


@pytest.fixture
async def second_api(reader: FrontReader) -> AsyncIterator[ModelApiServer]:
    async with ModelApiServer(reader, dialect=Dialect(api_key="sk-second")) as server:
        yield server


@pytest.fixture
def settings(model_api: ModelApiServer, second_api: ModelApiServer, settings_of: SettingsOf) -> Any:
    return settings_of(
        openai_base_url=model_api.base_url,
        openai_api_key="sk-first",
        fallback_model="spare",
        fallback_base_url=second_api.base_url,
        fallback_api_key="sk-second",
        **SMALL,
    )


async def test_the_second_model_has_the_same_checks_as_the_first_one(
    settings: Settings, model_api: ModelApiServer, second_api: ModelApiServer
) -> None:
    rows = await rows_of(check_second(settings))
    assert {row.verdict for row in rows.values()} == {"ok"}
    assert {"Second model stream", "Second model tool call", "Second model JSON"} < {*rows}
    assert "spare" in rows["Second model stream"].seen
    assert {chat.model for chat in second_api.log.chats} == {"spare"}
    assert model_api.log.calls == []


@pytest.mark.parametrize(
    ("refusal", "names"),
    [
        (ApiError(401, "Incorrect API key"), ["FALLBACK_API_KEY"]),
        (ApiError(404, "No such model"), ["FALLBACK_MODEL", "FALLBACK_BASE_URL"]),
    ],
)
async def test_the_advice_names_the_settings_of_the_second_model(
    settings: Settings, second_api: ModelApiServer, refusal: ApiError, names: list[str]
) -> None:
    second_api.faults.add(refusal, times=None)
    row = (await rows_of(check_second(settings)))["Second model stream"]
    assert row.verdict == "fail"
    assert all(name in row.advice for name in names)
    assert "OPENAI" not in row.advice
