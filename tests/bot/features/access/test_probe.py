"""The row of `check` about who may use the bot."""

import pytest
from pydantic import SecretStr

from bot.features.access.probes import PROBES
from tests.settings import Settings


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
    [probe] = PROBES
    assert probe.is_needed(settings)
    [row] = [row async for row in probe.run(settings)]
    assert (row.verdict, seen in row.seen) == (verdict, True), row
