"""What the check finds out about the embedding model."""

import pytest

from bot.check.embeddings import check_embeddings, native_row
from tests.bot.check.conftest import SettingsOf, rows_of
from tests.servers.model_api import (
    ApiError,
    Break,
    Dialect,
    ModelApiServer,
    is_embeddings,
    server_error,
)
from tests.servers.model_api.faults import Fault

HONEST = Dialect(dimensions=256)
STUBBORN = Dialect(dimensions=256, honours_dimensions=False)


async def test_without_an_embedding_model_no_server_is_called(settings_of: SettingsOf) -> None:
    [row] = (await rows_of(check_embeddings(settings_of(openai_embedding_model="off")))).values()
    assert (row.verdict, row.seen) == ("ok", "off: recall uses words alone")


@pytest.mark.parametrize(
    ("dialect", "asked", "verdict", "seen"),
    [
        (HONEST, None, "ok", "hashed: 256 dimensions"),
        (HONEST, 64, "ok", "hashed: 64 dimensions, as set (the model's own: 256)"),
        (STUBBORN, 64, "ok", "hashed: 64 dimensions, as set (the model's own: 256)"),
        (STUBBORN, 512, "fail", "hashed has 256 dimensions, but 512 are set"),
    ],
)
async def test_dimensions_are_compared_with_the_setting(
    settings_of: SettingsOf,
    model_api: ModelApiServer,
    dialect: Dialect,
    asked: int | None,
    verdict: str,
    seen: str,
) -> None:
    model_api.dialect = dialect
    settings = settings_of(
        openai_base_url=model_api.base_url,
        openai_embedding_model="hashed",
        openai_embedding_dimensions=asked,
    )
    [row] = (await rows_of(check_embeddings(settings))).values()
    assert (row.verdict, row.seen) == (verdict, seen)


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (ApiError(401, "Incorrect key"), "check OPENAI_API_KEY"),
        (Break.HTML, "check OPENAI_EMBEDDING_BASE_URL, which usually ends in /v1"),
        (
            server_error(),
            "try again, or check OPENAI_EMBEDDING_MODEL and OPENAI_EMBEDDING_BASE_URL",
        ),
    ],
)
async def test_a_server_without_embeddings_fails(
    settings_of: SettingsOf, model_api: ModelApiServer, fault: Fault, advice: str
) -> None:
    model_api.faults.add(fault, times=None, when=is_embeddings)
    settings = settings_of(openai_base_url=model_api.base_url)
    [row] = (await rows_of(check_embeddings(settings))).values()
    assert (row.verdict, row.advice) == (
        "fail",
        f"{advice}, or do without: OPENAI_EMBEDDING_MODEL=off",
    )


async def test_a_key_of_its_own_that_is_refused_is_named(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    model_api.faults.add(ApiError(401, "Incorrect key"), times=None, when=is_embeddings)
    settings = settings_of(openai_base_url=model_api.base_url, openai_embedding_api_key="own")
    [row] = (await rows_of(check_embeddings(settings))).values()
    assert row.advice.startswith("check OPENAI_EMBEDDING_API_KEY, ")


def test_many_dimensions_lead_to_the_advice_to_ask_for_fewer() -> None:
    advice = "OPENAI_EMBEDDING_DIMENSIONS=512 needs 3 times less memory"
    assert native_row("text-embedding-3-small", 1536).advice == advice
    assert native_row("any", 384).advice == ""
