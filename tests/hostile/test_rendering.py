"""Expensive replies: a person may ask the model to write any text."""

import asyncio
import sys

import pytest

from bot.reply.render import render
from tests.work import QUADRATIC, ratio


@pytest.mark.trial
async def test_no_reply_costs_too_much_for_its_length() -> None:
    growth = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.hostile.growth", "3000", stdout=asyncio.subprocess.PIPE
    )
    found, _ = await growth.communicate()
    assert found.decode() == ""
    assert growth.returncode == 0


@pytest.mark.parametrize("said", ["[a|\u0345\u0301\u0316|](https://a.example)", "    |[\\|"])
def test_a_reply_takes_linear_time(said: str) -> None:
    """Python sorts marks over one letter in quadratic time; a bracket in code may be a link."""
    before, unit, after = said.split("|")
    long, short = (before + unit * times + after for times in (4_000, 250))
    assert ratio(lambda: render(long), lambda: render(short), QUADRATIC) < QUADRATIC
