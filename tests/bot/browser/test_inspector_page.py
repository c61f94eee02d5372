"""The playground in a browser: people, a group, the made-up year, the panel, both color schemes.

With `RICORDO_SCREENSHOTS=1` it also takes the pictures of the README.
"""

import os
import struct
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

import bot.playground
from tests.acceptance.test_pictures import jpeg
from tests.bot.browser.visitor import PHONE, WIDE, Scheme, Visitor, visiting
from tests.servers.web_site import ARTICLE, Site

pytestmark = [
    pytest.mark.trial,
    pytest.mark.usefixtures("launcher"),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("browser"),  # one Chromium for all
]

SCREENSHOTS = Path(bot.playground.__file__).parent / "web" / "screenshots"


def stored_in(folder: Path) -> str:
    return "".join(each.read_text("latin-1") for each in folder.rglob("*") if each.is_file())


async def take_picture(visitor: Visitor, name: str) -> None:
    if os.environ.get("RICORDO_SCREENSHOTS"):
        SCREENSHOTS.mkdir(exist_ok=True)
        await visitor.page.evaluate("scrollTo(0, 0)")
        await visitor.page.screenshot(path=SCREENSHOTS / f"{name}.png")


async def test_a_pasted_key_is_used_and_written_nowhere(
    browser: Browser, playground: str, tmp_path: Path
) -> None:
    async with visiting(browser, playground) as visitor:
        top = visitor.page.get_by_role("banner")
        await top.get_by_text("Paste a key").click()
        await top.get_by_label("Your OPENAI_API_KEY").fill("sk-pasted")
        await top.get_by_role("button", name="Use it").click()
        await expect(top).to_contain_text("answered by gpt-5.4-mini")
        assert "Model: gpt-5.4-mini" in await visitor.say("Anna", "/stats")
        assert "/memory" in await visitor.say("Anna", "/help")
        assert "/help" in stored_in(tmp_path)
        assert visitor.complaints == []
    assert "sk-pasted" not in stored_in(tmp_path)


async def test_a_message_links_to_its_turn_with_its_tools_and_an_answer_can_be_stopped(
    browser: Browser, playground: str
) -> None:
    async with visiting(browser, playground) as visitor:
        await visitor.say("Anna", "What time is it?")
        await visitor.say("Anna", "Thank you")
        await expect(visitor.panel.locator("details.turn[open]")).to_contain_text("Turn 2")
        await visitor.place("Anna").get_by_role("link", name="How turn 1 was answered").click()
        turn = visitor.panel.locator("details.turn[open]")
        await expect(turn.locator("> summary")).to_contain_text("Turn 1")
        await expect(turn.locator("> .call")).to_have_text("current_time({})")
        await expect(turn.locator("> .call + .stretch")).to_contain_text("(UTC)")

        words = visitor.place("Anna").get_by_role("textbox")
        await words.fill("Count to 500")
        await words.press("Enter")
        draft = visitor.place("Anna").locator(".draft .text")
        texts = [await draft.inner_text()]
        await expect(draft).not_to_have_text(texts[0], use_inner_text=True)
        texts.append(await draft.inner_text())
        await words.press("Shift+Tab")
        await expect(visitor.page.locator(":focus")).to_have_text("Stop")
        await visitor.page.keyboard.press("Enter")
        answer = visitor.place("Anna").locator("article.theirs:not(.draft) .text").last
        await expect(answer).to_contain_text("(Stopped)")
        await expect(words).to_be_focused()
        texts.append(await answer.inner_text())
        assert all(later.startswith(former) for former, later in pairwise(["1 2 3", *texts]))
        await expect(visitor.panel.locator("details.turn[open]")).to_contain_text("broken off")
        assert visitor.complaints == []


async def test_the_keyboard_alone_is_enough(browser: Browser, playground: str) -> None:
    async with visiting(browser, playground) as visitor:
        page, focused = visitor.page, visitor.page.locator(":focus")
        words = visitor.place("Anna").get_by_role("textbox")
        await expect(words).to_be_focused()
        await page.keyboard.type("One line")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("and another")
        await page.keyboard.press("Enter")
        await expect(visitor.place("Anna").locator("article.mine .text")).to_have_text(
            "One line\nand another", use_inner_text=True
        )
        answer = visitor.place("Anna").locator("article.theirs:not(.draft)")
        await expect(answer).to_be_visible()
        await expect(words).to_be_focused()
        for stop in ("Send", "", "Record a sound", "Commands"):  # the second chooses a file
            await page.keyboard.press("Tab")
            await expect(focused).to_have_text(stop)
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await expect(focused).to_contain_text("/new")
        await visitor.say("Anna", "/clear")
        await page.get_by_role("button", name="Keep everything").focus()
        await page.keyboard.press("Enter")
        await expect(focused).to_contain_text("Nothing was erased")  # the message says so itself

    async with visiting(browser, playground, PHONE) as visitor:
        page, focused = visitor.page, visitor.page.locator(":focus")
        await page.keyboard.press("Tab")
        await expect(focused).to_have_text("Skip to what happened")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await expect(focused).to_contain_text("Turn 1")
        turn = visitor.panel.locator("details.turn")
        await expect(turn).to_have_attribute("open", "")
        await page.keyboard.press("Enter")
        await expect(turn).not_to_have_attribute("open", "")
        await page.goto(page.url.partition("#")[0])
        for _ in range(2):
            await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(visitor.place("Anna").get_by_role("textbox")).to_be_focused()


async def test_the_page_is_readable_on_a_phone_and_on_a_wide_screen(
    browser: Browser, playground: str
) -> None:
    schemes: tuple[Scheme, ...] = ("light", "dark")
    async with visiting(browser, playground, PHONE) as visitor:
        await visitor.say("Anna", "My sister’s boat is called Aurora")
        await visitor.say("Anna", "How much is 12 times 12?")
        await expect(visitor.place("Ben")).to_be_hidden()
        await visitor.say("Anna", "a" * 200)
        await visitor.open("Ben")
        await expect(visitor.place("Anna")).to_be_hidden()
        await visitor.say("Anna", "/clear")
        for scheme in schemes:
            await visitor.page.emulate_media(color_scheme=scheme)
            await visitor.check_looks(PHONE, WIDE)
            is_dark = await visitor.page.evaluate(
                "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128"
            )
            assert is_dark == (scheme == "dark")
        await visitor.place("Anna").get_by_role("button", name="Keep everything").click()
        await expect(visitor.place("Anna").locator(".row")).to_have_count(0)


_SAY = '(text) => fetch("/say", {method: "POST", body: new URLSearchParams({at: "c:99:0", text})})'
_SCROLL_TO = "(each) => (each.scrollIntoView(), show(new DOMParser().parseFromString(document.documentElement.outerHTML, 'text/html')), scrollY)"  # noqa: E501 - the page hears of news before it hears of the scrolling
_BOX = "(each) => each.getBoundingClientRect().toJSON()"


async def test_one_press_fills_a_year_and_an_answer_from_months_ago_is_explained(
    browser: Browser, playground: str
) -> None:
    async with visiting(browser, playground, (1440, 900)) as visitor:
        anna = visitor.place("Anna")
        await anna.get_by_role("button", name="Fill with a year of talk").click()
        maya = visitor.place("Maya")
        await maya.get_by_role("button", name="Where is my spare key?").click()
        found = visitor.panel.locator(".recalled > li.quoted")
        await expect(found).to_contain_text("months ago")
        await expect(found).to_contain_text("the extra one is under the blue flowerpot")
        await expect(found.locator(".reasons")).to_contain_text("By words: it contains “key”")
        answer = maya.locator("article.theirs .text").last
        await expect(answer).to_contain_text("months ago: “If I lose my key again")
        await expect(answer).to_be_in_viewport()
        lead = visitor.panel.locator("details[open] > .lead")
        await expect(lead).to_contain_text("The answer rests on a message of Maya")
        await take_picture(visitor, "inspector")
        await maya.get_by_role("button", name="paint in my hallway").click()
        await expect(answer).to_contain_text("Sea Glass")
        await expect(lead).to_contain_text("months ago")
        await maya.get_by_role("button", name="soup").click()
        await expect(answer).to_contain_text("What I learned")
        await expect(answer).to_contain_text("horseradish")
        await maya.get_by_role("link", name="How turn 1 was answered").click()
        await found.get_by_role("link", name="Show it in the chat").click()
        await expect(maya.locator("article:target")).to_contain_text("blue flowerpot")
        await expect(maya.locator("article:target")).to_be_in_viewport()
        assert visitor.complaints == []
        await visitor.page.goto(f"{playground}?at=c:99:0")
        read = maya.locator(f"[id='{await maya.locator('article').nth(40).get_attribute('id')}']")
        assert await read.evaluate(_SCROLL_TO) == 0
        before, oldest = await read.evaluate(_BOX), maya.locator("article").first
        assert before["y"] >= 0
        first = await oldest.inner_text()
        await visitor.page.evaluate(_SAY, "a" * 90_000)
        await expect(oldest).not_to_have_text(first, use_inner_text=True)
        assert abs((await read.evaluate(_BOX))["y"] - before["y"]) < 2
        await visitor.check_looks(PHONE, WIDE)
    async with visiting(browser, playground, PHONE, "dark") as visitor:
        await visitor.open("Maya")
        await take_picture(visitor, "phone")
        await visitor.check_looks(PHONE)
        await visitor.page.reload()
        await visitor.place("Maya").get_by_role("button", name="Erase this year").click()
        await expect(visitor.place("Anna")).to_be_visible()
        chats = visitor.page.get_by_role("navigation", name="Chats")
        await expect(chats.get_by_text("Maya")).to_have_count(0)


async def test_people_and_topics_can_be_added_seen_in_the_store_and_erased(
    browser: Browser, playground: str
) -> None:
    """The message box is wide and in view in every window."""
    async with visiting(browser, playground) as visitor:
        page = visitor.page
        for kind, name in (("person", "Chloé"), ("topic", "Repairs <&>")):
            await page.get_by_text("People, topics, start over").click()
            await page.get_by_label(f"A new {kind}’s name").fill(name)
            await page.get_by_role("button", name=f"Add {kind}").click()
        assert await visitor.say("Chloé", "I play the cello")
        repairs = "Sailing club · Repairs <&>"
        assert "mast" in await visitor.say(repairs, "The mast is cracked", "Chloé")
        await expect(visitor.place(repairs).locator("article.mine .author")).to_contain_text(
            "Chloé"
        )
        sheet, topic = page.get_by_text("Add somebody"), visitor.place(repairs)
        heading = topic.get_by_role("heading").first
        for close in (partial(page.keyboard.press, "Escape"), heading.click):
            await page.get_by_text("People, topics, start over").click()
            await expect(sheet).to_be_visible()
            await close()
            await expect(sheet).to_be_hidden()
        parts = (topic, topic.get_by_role("textbox"), topic.get_by_role("button", name="Send"))
        for size in (PHONE, WIDE, (1366, 768), (1440, 900), (1600, 900), (1760, 990)):
            await visitor.resize(size)
            chat, words, send = [await each.evaluate(_BOX) for each in parts]
            assert words["width"] > 0.6 * chat["width"]
            assert send["bottom"] <= size[1]

        await visitor.panel.get_by_role("link", name="Show every key and its entries").click()
        log = visitor.panel.locator("details.key", has_text="log stream")
        await log.locator("summary").click()
        await expect(log).to_contain_text("t: The mast is cracked")
        await page.get_by_text("People, topics, start over").click()
        await page.get_by_role("button", name="Erase and start over").click()
        await expect(page.locator("article")).to_have_count(0)
        assert visitor.complaints == []


async def test_files_replies_and_edits_are_sent_or_kept_and_an_export_opens(
    browser: Browser, playground: str
) -> None:
    async with visiting(browser, playground) as visitor:
        anna = visitor.place("Anna")
        await anna.get_by_label("Attach a file").set_input_files(
            {"name": "boat.txt", "mimeType": "text/plain", "buffer": b"The mast is of spruce."}
        )
        words, alert = anna.get_by_role("textbox"), anna.get_by_role("alert")
        await visitor.page.context.set_offline(True)
        await words.fill("Look at boat.txt")
        await words.press("Enter")
        await expect(alert).to_contain_text("Not sent: the playground does not answer.")
        await expect(words).to_have_value("Look at boat.txt")
        visitor.complaints.clear()  # about the network
        await visitor.page.context.set_offline(False)
        await anna.get_by_role("button", name="Send").click()
        answer = anna.locator("article.theirs .text")
        await expect(answer).to_contain_text("boat.txt")
        await expect(anna.locator("article.mine .text")).to_have_text("Look at boat.txt")
        await expect(alert).to_have_count(0)
        await anna.get_by_role("link", name="Reply").last.click()
        await expect(anna.locator(".reply")).to_contain_text("Reply to Ricordo")
        await visitor.say("Anna", "What is the mast made of?")
        await expect(anna.locator("article.mine blockquote")).to_contain_text("Ricordo: I am")
        await expect(anna.locator(".reply")).to_be_empty()

        await anna.get_by_role("link", name="Edit").last.click()
        await expect(words).to_have_value("What is the mast made of?")
        await visitor.page.wait_for_load_state()  # Enter is the script's
        await words.fill("What is the mast of my boat made of?")
        await words.press("Enter")
        question = anna.locator("article.mine", has_text="my boat")
        await expect(question.locator("time")).to_contain_text("edited")
        await expect(words).to_have_value("")
        await visitor.say("Anna", "/export")
        async with visitor.page.context.expect_page() as opened:
            await anna.locator("article.theirs a.attached").click()
        export = await opened.value
        await expect(export.locator("body")).to_contain_text("the mast of my boat made of?")
        await expect(export.locator("body")).not_to_contain_text("What is the mast made of?")
        assert visitor.complaints == []


_SILENCE = (
    struct.pack(
        *("<4sI8sIHHIIHH4sI", b"RIFF", 836, b"WAVEfmt ", 16, 1, 1, 8000, 8000, 1, 8, b"data", 800)
    )
    + b"\x80" * 800
)
_DROP = """
([content, name, type]) => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([new Uint8Array(content)], name, { type }));
  for (const kind of ["dragover", "drop"]) {
    const event = new DragEvent(kind, { dataTransfer: dropped, bubbles: true, cancelable: true });
    document.querySelector(".messages").dispatchEvent(event);
  }
}
"""


async def test_pictures_sounds_and_links_are_sent_and_asked_for_later(
    browser: Browser, playground: str
) -> None:
    async with visiting(browser, playground, PHONE, "dark") as visitor, Site() as site:
        page, anna = visitor.page, visitor.place("Anna")
        files, words = anna.get_by_label("Attach a file"), anna.get_by_role("textbox")
        answers = anna.locator("article.theirs:not(.draft) .text")
        await files.set_input_files(
            {"name": "stamp.jpg", "mimeType": "image/jpeg", "buffer": jpeg("blue")}
        )
        await visitor.say("Anna", "The stamp is from Oulu")
        await expect(answers.last).to_contain_text("640 × 480 pixels.")
        shown = anna.get_by_role("img", name="Picture: The stamp is from Oulu")
        assert await shown.evaluate("(each) => each.decode().then(() => each.naturalWidth)") == 640

        await page.evaluate(_DROP, [list(_SILENCE), "note.wav", "audio/wav"])
        answer = await visitor.say("Anna", "The regatta begins at ten")
        assert answer.startswith("🎙 The regatta begins at ten")
        await expect(anna.locator("audio")).to_be_visible()

        await files.press("Tab")
        await expect(page.locator(":focus")).to_have_text("Record a sound")
        await page.keyboard.press("Enter")
        recording = anna.get_by_role("button", name="Stop recording", pressed=True)
        await expect(recording).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(files).to_be_focused()
        assert await files.evaluate("(each) => each.files[0].size") > 0
        answer = await visitor.say("Anna", "The club meets in Turku")
        assert answer.startswith("🎙 The club meets in Turku")

        site.put("/sea", ARTICLE.encode())
        assert "The blue whale" in await visitor.say("Anna", f"Read {site.at('/sea')}")
        assert "did not work" in await visitor.say("Anna", "Read http://127.0.0.2/")
        assert "Oulu" in await visitor.say("Anna", "Where is the stamp from?")
        assert "at ten" in await visitor.say("Anna", "When does the regatta begin?")

        await page.evaluate(_DROP, [20 * 2**20 + 1, "big.png", "image/png"])
        await words.press("Enter")
        await expect(anna.get_by_role("alert")).to_have_text("Telegram takes files up to 20 MB.")
        assert visitor.complaints == []
        await visitor.check_looks(PHONE, WIDE)


async def test_anna_is_the_admin_and_each_person_can_change_the_language(
    browser: Browser, playground: str
) -> None:
    async with visiting(browser, playground) as visitor:
        assert "Model: offline model" in await visitor.say("Anna", "/stats")
        await visitor.open("Ben")
        await visitor.page.get_by_text("People, topics, start over").click()
        await visitor.page.get_by_label("speaks").select_option("fa")
        await visitor.page.get_by_role("button", name="Switch language").click()
        await visitor.say("Ben", "/privacy")
        text = visitor.place("Ben").locator("article.theirs .text").last
        assert await text.evaluate("(each) => getComputedStyle(each).direction") == "rtl"


async def test_the_page_works_without_scripts(browser: Browser, playground: str) -> None:
    async with visiting(browser, playground, PHONE, scripts=False) as visitor:
        anna = visitor.place("Anna")
        await anna.get_by_role("textbox").fill("My sister’s boat is called Aurora")
        await anna.get_by_role("button", name="Send").click()
        async with visiting(browser, playground) as watcher:
            answer = watcher.place("Anna").locator("article.theirs:not(.draft)")
            await expect(answer).to_be_visible()
        await visitor.page.reload()
        await expect(anna.locator("article.theirs")).to_contain_text("Aurora")
        await expect(visitor.panel.locator("details.turn[open]")).to_contain_text("The message")
