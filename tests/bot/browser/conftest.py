"""A playground as a process of its own, and a headless Chromium to look at it with."""

import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.acceptance.bot_process import BotProcess

_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


@pytest_asyncio.fixture(loop_scope="module")
async def playground(tmp_path: Path) -> AsyncIterator[str]:
    """Give the address of a playground whose window is four messages long."""
    process = BotProcess(
        {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "DATA_DIR": str(tmp_path / "data"),
            "TELEGRAM_BOT_TOKEN": "",
            "OPENAI_API_KEY": "",
            "PORT": "0",
            "COALESCE_S": "0.05",
            "WINDOW_MESSAGES": "4",
            "HINTS": "off",
            "LOCAL_SITES": "yes",
            "MENUS": "yes",
        }
    )
    await process.start()
    address = re.search(r"http://\S+", "\n".join(line for line in process.raw if "{" not in line))
    assert address
    yield address[0]
    await process.stop()
    process.check_log()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Give Debian's Chromium, or another one that is installed; each visit has its own window."""
    chromium = next(filter(None, map(shutil.which, _CHROMIUMS)), None)
    if chromium is None:
        pytest.skip("no Chromium found: on Debian `apt-get install chromium`")
    # Chromium's sandbox refuses to serve root, as whom CI runs.
    args = ["--no-sandbox"] if os.geteuid() == 0 else []
    args += ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=chromium, args=args)
        yield launched
        await launched.close()
