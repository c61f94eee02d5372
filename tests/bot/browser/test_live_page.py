"""The inspector of the running bot in a browser that runs no script: two widths, two colors.

With `RICORDO_SCREENSHOTS=1` it also takes the picture of docs/deploying.md.
"""

import asyncio
import os
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.acceptance.bot_process import ROOT
from tests.acceptance.pages import page as address_of
from tests.acceptance.rig import open_rig
from tests.bot.browser.visitor import PHONE, WIDE, Visitor, visiting
from tests.servers.model_api import Reply, server_error

pytestmark = [
    pytest.mark.trial,
    pytest.mark.usefixtures("launcher"),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("browser"),  # one Chromium for all
]

TOKEN = "a-long-token-of-the-operator"
PICTURE = ROOT / "docs" / "inspector.png"


async def sign_in(visitor: Visitor) -> None:
    await visitor.page.get_by_label("INSPECTOR_TOKEN").fill(TOKEN)
    await visitor.page.get_by_role("button", name="Open").click()
    await visitor.page.get_by_role("heading", name="Turns under way").wait_for()


async def test_the_inspector_can_be_read_without_scripts_at_every_width_and_in_both_colors(
    browser: Browser, valkey: str, tmp_path: Path
) -> None:
    thought = asyncio.Event()
    async with open_rig(valkey, tmp_path, "webhook") as rig:
        rig.environment["REDIS_URL"] += "?memory_mb=25"
        rig.environment["INSPECTOR_TOKEN"] = TOKEN
        rig.environment |= {"PRICES": "gpt-5.4-mini 0.75 4.5 0.075", "BUDGET_PER_MONTH": "20"}
        rig.script.on("slow", *(Reply("There.", gate=thought) for _ in range(3)))
        rig.bot = rig.another_bot(command="web", port=rig.environment["PORT"])
        worker = rig.another_bot(command="worker", webhook_url="")
        await asyncio.gather(rig.bot.start(), worker.start())
        people = [rig.person(7007000 + number, f"Person {number}") for number in range(4)]
        for person, chat in people:
            await rig.ask(person, chat, "My boat is called Aurora.")
        rig.model.faults.add(server_error(), times=None)
        await rig.ask(*people[0], "What is it called?")
        rig.model.faults.clear()
        for person, chat in people[:3]:
            await person.say(chat, "Think slowly of it.")
        await rig.wait_until_asked("slow", times=3)

        url = address_of(rig, "/inspect")
        async with visiting(browser, url, scripts=False) as visitor:
            await visitor.check_looks(WIDE)
            await sign_in(visitor)
            await visitor.check_looks(WIDE)
            await visitor.page.get_by_role("link", name="Pause").click()
            await visitor.page.get_by_role("link", name="Go on").wait_for()
            if os.environ.get("RICORDO_SCREENSHOTS"):
                await visitor.page.screenshot(path=PICTURE, full_page=True)
        assert [each for each in visitor.complaints if "401" not in each] == []
        async with visiting(browser, url, PHONE, "dark", scripts=False) as visitor:
            await sign_in(visitor)
            await visitor.check_looks(PHONE, WIDE)
            await visitor.page.get_by_role("button", name="Sign out").click()
            await visitor.page.get_by_text("You are signed out.").wait_for()
        thought.set()
