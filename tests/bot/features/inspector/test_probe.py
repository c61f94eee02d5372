"""The row of `check` about the inspector."""

import pytest
from pydantic import SecretStr

from bot.features.inspector.probes import PROBES
from tests.settings import Settings


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
    [row] = [row async for row in PROBES[0].run(settings)]
    assert (row.verdict, seen in row.seen) == (verdict, True)
    assert token is None or token not in str(row)
