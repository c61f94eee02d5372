"""Expensive replies: a person may ask the model to write any text."""

import asyncio
import sys


async def test_time_and_size_of_a_rendered_reply_grow_no_faster_than_the_reply() -> None:
    growth = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.hostile.growth", "3000", stdout=asyncio.subprocess.PIPE
    )
    found, _ = await growth.communicate()
    assert found.decode() == ""
    assert growth.returncode == 0
