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


def test_a_link_of_marks_takes_linear_time() -> None:
    """Python sorts the marks over one letter in quadratic time."""
    marks = "\u0345\u0301\u0316"
    long, short = ("[a" + marks * times + "](https://a.example)" for times in (4_000, 250))
    assert ratio(lambda: render(long), lambda: render(short), QUADRATIC) < QUADRATIC
