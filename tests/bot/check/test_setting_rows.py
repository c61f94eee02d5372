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


class Selecting:
    def select(self, messages: object) -> object:
        return messages


@pytest.mark.parametrize(
    ("name", "verdict", "seen", "advice"),
    [
        ("Selecting", "ok", "Selecting takes the place of ours", ""),
        ("Flat", "fail", "needs the method `def select(self, messages)`", "see docs/behaviors.md"),
        ("Missing", "fail", "cannot be imported", "check the name"),
    ],
)
async def test_the_row_says_why_an_operators_selector_cannot_take_the_place_of_ours(
    name: str, verdict: str, seen: str, advice: str
) -> None:
    settings = Settings(message_selector=f"{__name__}:{name}")
    rows = {row.what: row async for row in check_settings(settings)}
    row = rows["Message selector"]
    assert (row.verdict, seen in row.seen, advice in row.advice) == (verdict, True, True), row
    assert "Next action" not in rows


@pytest.mark.parametrize(("name", "verdict"), [("Selecting", "ok"), ("Missing", "fail")])
async def test_a_behavior_that_cannot_be_found_is_a_failure(name: str, verdict: str) -> None:
    rows = check_settings(Settings(behaviors=(f"{__name__}:{name}@private",)))
    assert [row.verdict async for row in rows if row.what == "Behaviors"] == [verdict]


@pytest.mark.parametrize(
    ("given", "verdict", "seen"),
    [
        ({}, "warn", "everybody, and your key pays"),
        ({"allowed_user_ids": "7"}, "ok", "people named in the settings: 1; groups: all"),
        ({"allowed_user_ids": "7", "access": "open"}, "warn", "ACCESS=open, but only the people"),
        ({"access": "ask"}, "warn", "ACCESS=ask, but there is no admin"),
        ({"access": "invite"}, "warn", "ACCESS=invite, but there is no admin"),
        ({"access": "Ask", "admin_user_ids": "1"}, "ok", ": 1, whom an admin lets in; groups: 0"),
        ({"access": "invite", "admin_user_ids": "1", "allowed_group_ids": "-5"}, "ok", "groups: 1"),
        ({"allowed_group_ids": "-5, -6"}, "warn", "in groups only in 2"),
    ],
)
async def test_the_row_says_who_may_use_the_bot_and_what_does_not_fit(
    given: dict[str, str], verdict: str, seen: str
) -> None:
    settings = Settings(telegram_bot_token=SecretStr("42:made_up"), **given)  # type: ignore[arg-type]
    rows = {row.what: row async for row in check_settings(settings)}
    row = rows["Who may use it"]
    assert (row.verdict, seen in row.seen) == (verdict, True), row


@pytest.mark.parametrize(
    ("token", "verdict", "seen"),
    [
        (None, "ok", "off"),
        ("short", "warn", "guessed"),
        ("a" * 40, "warn", "guessed"),
        ("8f14e45fceea167a5a36dedd4bea2543", "ok", "on at /inspect"),
    ],
)
async def test_a_token_of_the_inspector_that_can_be_guessed_gets_a_warning(
    token: str | None, verdict: str, seen: str
) -> None:
    settings = Settings(inspector_token=SecretStr(token) if token else None)
    rows = {row.what: row async for row in check_settings(settings)}
    row = rows["Inspector"]
    assert (row.verdict, seen in row.seen) == (verdict, True)
    assert token is None or token not in str(row)
