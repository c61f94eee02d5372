"""Rows about settings: the operator's own model for the running state, and who may use the bot."""

import pytest
from pydantic import BaseModel, SecretStr

from bot.check.rows import Row
from bot.check.setting_rows import check_settings
from config.settings import Settings


class Flat(BaseModel):
    issue: str | None = None


class Loose(BaseModel):
    labels: dict[str, str] = {}


async def row_of(model: str) -> Row:
    settings = Settings(knowledge_base_model=model)
    rows = [row async for row in check_settings(settings)]
    return next(row for row in rows if row.what == "Domain model")


@pytest.mark.parametrize(
    ("model", "verdict", "seen"),
    [
        ("Flat", "ok", "fits"),
        ("Loose", "warn", "no strict schema"),
        ("Missing", "fail", "cannot be imported"),
        ("row_of", "fail", "not a class"),
    ],
)
async def test_the_row_says_why_a_domain_model_does_not_fit_a_strict_schema(
    model: str, verdict: str, seen: str
) -> None:
    row = await row_of(f"{__name__}:{model}")
    assert (row.verdict, seen in row.seen) == (verdict, True)


@pytest.mark.parametrize(("allowed", "warns"), [(frozenset[int](), True), (frozenset({7}), False)])
async def test_a_bot_that_is_open_to_everybody_gets_a_warning(
    allowed: frozenset[int], *, warns: bool
) -> None:
    settings = Settings(telegram_bot_token=SecretStr("42:made_up"), allowed_user_ids=allowed)
    rows = {row.what: row async for row in check_settings(settings)}
    assert ("Who may use it" in rows) == warns
