"""Rows about settings: classes and features of the operator, prices."""

import sys

import pytest
from pydantic import SecretStr, ValidationError

from bot.features.check.command_line import check_settings
from tests.settings import Settings


class Selecting:
    def select(self, messages: object) -> object:
        return messages


@pytest.mark.parametrize(("name", "verdict"), [("Selecting", "ok"), ("Missing", "fail")])
async def test_a_feature_that_cannot_be_found_is_a_failure(name: str, verdict: str) -> None:
    rows = check_settings(Settings(features=(f"{__name__}:{name}",)))
    assert [row.verdict async for row in rows if row.what == "Features"] == [verdict]


@pytest.mark.parametrize(("name", "verdict"), [("Selecting", "ok"), ("Missing", "fail")])
async def test_a_behavior_that_cannot_be_found_is_a_failure(name: str, verdict: str) -> None:
    rows = check_settings(Settings(behaviors=(f"{__name__}:{name}@private",)))
    assert [row.verdict async for row in rows if row.what == "Behaviors"] == [verdict]


@pytest.mark.parametrize(
    ("prices", "seen"),
    [
        ("m 1 1 1; e 1 0 0; ear 0.006/min; mouth 15/Mchar; pen 0.04/image", ""),
        ("m 1 1 1; e 1 0 0; ear 1 1 1; mouth 0.015/kchar; pen 5 1 40", ""),
        ("m 1 1 1; mouth 1 1 1; pen 1/min", "does not count e, mouth, ear, pen"),
        ("m 0.006/min; e 1 0 0; ear 15/Mchar; mouth 15/Mchar; pen 1 1 1", "does not count m, ear"),
    ],
)
async def test_models_that_the_budget_cannot_count_are_named(prices: str, seen: str) -> None:
    settings = Settings.model_validate(
        {
            "openai_model": "m",
            "openai_memory_model": "m",
            "openai_embedding_model": "e",
            "transcription_model": "ear",
            "speech_model": "mouth",
            "openai_image_model": "pen",
            "prices": prices,
            "budget_per_month": 5,
        }
    )
    rows = [row.seen async for row in check_settings(settings) if row.what == "Prices"]
    assert [row.endswith(seen) for row in rows] == ([True] if seen else []), rows


@pytest.mark.parametrize("price", ["m", "m 1 1", "m 1/min 2", "m 1/hour", "m -1/min", "m x/min"])
def test_a_price_in_no_known_form_is_refused(price: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"prices": price})


@pytest.mark.parametrize(("is_here", "verdict"), [(True, "ok"), (False, "warn")])
async def test_error_reports_are_named_without_the_key(
    monkeypatch: pytest.MonkeyPatch, verdict: str, *, is_here: bool
) -> None:
    if not is_here:
        monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    settings = Settings(sentry_dsn=SecretStr("https://public@127.0.0.1/1"))
    [row] = [row async for row in check_settings(settings) if row.what == "Error reports"]
    assert row.verdict == verdict
    assert "public" not in row.seen + row.advice
