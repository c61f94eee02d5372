"""Replies that were written to be expensive: the model writes what people ask it to."""

import asyncio
import sys


async def test_time_and_output_of_rendering_grow_no_faster_than_the_reply() -> None:
    growth = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.hostile.growth", "3000", stdout=asyncio.subprocess.PIPE
    )
    found, _ = await growth.communicate()

    assert found.decode() == ""
    assert growth.returncode == 0
