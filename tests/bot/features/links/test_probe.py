"""What the check finds out about the search service."""

import pytest

from bot.features.links.probes import _web_search as check_web_search
from bot.probe import Verdict
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.search_service import KEY, SearchServer


async def test_a_search_is_made(settings_of: SettingsOf) -> None:
    async with SearchServer(("https://a.example/", "a")) as server:
        brave = settings_of(search_url=server.brave, search_api_key=KEY)
        searxng = settings_of(search_url=server.url)
        [of_brave] = (await rows_of(check_web_search(brave))).values()
        [of_searxng] = (await rows_of(check_web_search(searxng))).values()
    assert (of_brave.verdict, of_brave.seen) == ("ok", "Brave answers (1 results)")
    assert (of_searxng.verdict, of_searxng.seen) == ("ok", "SearXNG answers (1 results)")


async def test_without_a_service_nothing_is_asked(settings_of: SettingsOf) -> None:
    [unset] = (await rows_of(check_web_search(settings_of()))).values()
    [off] = (await rows_of(check_web_search(settings_of(web="off", search_api_key=KEY)))).values()
    assert (unset.verdict, unset.seen) == (
        "ok",
        "off: neither SEARCH_URL nor SEARCH_API_KEY is set",
    )
    assert (off.verdict, off.seen) == ("ok", "off: WEB=off")
    assert settings_of(search_api_key=KEY).search_url is not None


@pytest.mark.parametrize(
    ("key", "has_pages", "verdict", "advice"),
    [
        ("wrong", True, "warn", "check SEARCH_API_KEY"),
        ("", True, "warn", "allow json in search.formats of the settings.yml of this SearXNG"),
        (KEY, False, "warn", "look at its search engines"),
    ],
)
async def test_what_is_wrong_is_named_with_its_setting(
    settings_of: SettingsOf, key: str, *, has_pages: bool, verdict: Verdict, advice: str
) -> None:
    async with SearchServer(*([("https://a.example/", "a")] if has_pages else [])) as server:
        server.allows_json = False
        address = server.brave if key else server.url
        settings = settings_of(search_url=address, search_api_key=key or None)
        [row] = (await rows_of(check_web_search(settings))).values()
    assert (row.verdict, row.advice) == (verdict, advice)
    assert KEY not in row.seen
