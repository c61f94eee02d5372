"""A visitor of the playground's page, who does what a person can do with it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal
from urllib.parse import urlsplit

from playwright.async_api import Browser, Locator, Page, Request, expect

Scheme = Literal["dark", "light"]
WIDE, PHONE = (1280, 800), (390, 844)

_CONTROLS = {"button", "checkbox", "combobox", "DisclosureTriangle", "link", "textbox"}
_OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
_OVERFLOW_PX = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_CONTRAST = """
() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const [red, green, blue, alpha = 1] = numbers(getComputedStyle(each).backgroundColor);
      if (alpha) return [red, green, blue];
    }
    return [255, 255, 255];
  };
  const luminance = (rgb) => {
    const [red, green, blue] = rgb
      .slice(0, 3)
      .map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ratio = (element) => {
    const part = element.matches("textarea:placeholder-shown") ? "::placeholder" : null;
    const one = luminance(numbers(getComputedStyle(element, part).color));
    const other = luminance(behind(element));
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  };
  const isWords = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
  const speaks = (element) => [...element.childNodes].some(isWords) || element.placeholder;
  return [...document.body.querySelectorAll("*")]
    .filter((element) => element.checkVisibility() && speaks(element) && ratio(element) < 4.5)
    .map((element) => `${element.tagName}.${element.className}: ${ratio(element).toFixed(2)}`);
}
"""


class Visitor:
    """One browser window; `complaints` are the browser's errors and requests to other hosts."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._check)

    def _check(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.complaints.append(f"loads {request.url}")

    @property
    def panel(self) -> Locator:
        """The panel that explains the turns."""
        return self.page.get_by_role("complementary", name="What happened")

    def place(self, title: str) -> Locator:
        """Return a chat; it is visible only while it is open."""
        return self.page.get_by_role("region", name=title, exact=True)

    async def open(self, title: str) -> Locator:
        """Open a chat, unless it is open, and return it."""
        place = self.place(title)
        if not await place.count():
            chats = self.page.get_by_role("navigation", name="Chats")
            await (
                chats.get_by_role("link")
                .filter(has=self.page.get_by_text(title, exact=True))
                .click()
            )
        await place.wait_for()
        await self.page.wait_for_load_state()  # before its script has run, Enter sends nothing
        return place

    async def say(self, title: str, text: str, speaker: str = "") -> str:
        """Type a message, send it with Enter and return the bot's answer."""
        place = await self.open(title)
        if speaker:
            await place.get_by_label("Speak as").select_option(speaker)
        answers = place.locator("article.theirs:not(.draft) .text")
        before = await answers.count()
        words = place.get_by_role("textbox")
        await words.fill(text)
        await words.press("Enter")
        return await answers.nth(before).inner_text()

    async def resize(self, size: tuple[int, int]) -> None:
        await self.page.set_viewport_size({"width": size[0], "height": size[1]})

    async def check_looks(self, *sizes: tuple[int, int]) -> None:
        """Open everything, and fail if in a window something does not fit, is faint or nameless.

        Faint texts have a contrast below 4.5 (WCAG 2.2, 1.4.3). Assistive technology has no name
        for nameless controls.
        """
        for size in sizes:
            await self.resize(size)
            await self.page.evaluate(_OPEN)
            assert await self.page.evaluate(_OVERFLOW_PX) <= 0
            assert await self.page.evaluate(_CONTRAST) == []
            session = await self.page.context.new_cdp_session(self.page)
            nodes = (await session.send("Accessibility.getFullAXTree"))["nodes"]
            seen = [node for node in nodes if not node["ignored"]]
            controls = [node for node in seen if node["role"]["value"] in _CONTROLS]
            assert controls
            assert [node for node in controls if not node["name"]["value"]] == []


@asynccontextmanager
async def visiting(
    browser: Browser,
    url: str,
    size: tuple[int, int] = WIDE,
    scheme: Scheme = "light",
    *,
    scripts: bool = True,
) -> AsyncIterator[Visitor]:
    """Open the page; visits with scripts share a window, which they leave empty.

    A window of its own is more than half of the processor time of a short visit.
    """
    is_shared = scripts and bool(browser.contexts)
    context = (
        browser.contexts[0] if is_shared else await browser.new_context(java_script_enabled=scripts)
    )
    context.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)  # as long, and not the five seconds of the library
    page = context.pages[0] if context.pages else await context.new_page()
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    visitor = Visitor(page, url)
    await visitor.resize(size)
    await page.goto(url)
    yield visitor
    if not scripts:
        await context.close()
        return
    await page.goto("about:blank")
    await context.clear_cookies()
    for opened in context.pages[1:]:
        await opened.close()
