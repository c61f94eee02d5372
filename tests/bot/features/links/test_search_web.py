"""`search_web`: few short results of the operator's search service, and one line for trouble."""

from collections.abc import AsyncIterator

import pytest

from bot.features.links import search_web
from bot.features.links.probes import _web_search as check_web_search
from bot.features.links.search_web import SearchService, SearchWebArguments, search_web_tool
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import ToolError
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.search_service import KEY, SearchServer

WHALES = ("https://sea.example/whales", "A <b>whale</b> weighs\n190&nbsp;t.")


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SearchServer]:
    async with SearchServer(WHALES) as running:
        monkeypatch.setattr(search_web, "BRAVE", running.brave)
        yield running


async def searched(service: SearchService, context: AgentContext, query: str = "whales") -> str:
    return await search_web_tool(service).run(SearchWebArguments(query=query), context)


async def test_both_kinds_of_services_give_title_address_and_short_text(
    server: SearchServer, context: AgentContext
) -> None:
    brave, searxng = SearchService(KEY), SearchService(server.url)
    url, _ = WHALES
    expected = f"1. About {url}\n{url}\nA whale weighs 190 t."
    assert await searched(brave, context) == expected
    assert await searched(searxng, context) == expected
    assert await searched(SearchService(f"{server.url}/search"), context) == expected
    assert await searched(brave, context, "a b " * 200) == expected
    assert server.queries[-1] == " ".join(["a b"] * 25)
    assert search_web_tool(brave).is_untrusted
    server.pages = ()
    assert await searched(brave, context) == await searched(searxng, context)


async def test_results_are_bounded_in_number_and_size_and_have_web_addresses(
    server: SearchServer, context: AgentContext
) -> None:
    server.pages = (
        ("javascript:alert(1)", "no page"),
        ("https://sea.example/two\nlines", "no address"),
        (f"https://sea.example/{'a' * 500}", "too long"),
        *((f"https://sea.example/{n}", "long " * 10_000) for n in range(40)),
    )
    text = await searched(SearchService(server.url), context)
    assert text.count("https://sea.example/") == 2 * 8
    assert "…" in text
    assert len(text) < 8 * 500


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (401, "does not take its key"),
        (429, "asked too often"),
        (500, "status 500"),
        ("html", "did not answer with JSON"),
        ("50 MB", "cannot be read"),
        ("elsewhere", "redirects"),
        ("silence", "took too long"),
    ],
)
async def test_trouble_is_told_in_one_line_without_the_key(
    server: SearchServer,
    context: AgentContext,
    trouble: int | str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if trouble == "silence":
        monkeypatch.setattr("bot.features.links.search_web._TIMEOUT_S", 0.2)
    server.trouble = trouble
    with pytest.raises(ToolError, match=told) as failed:
        await searched(SearchService(KEY), context)
    assert KEY not in str(failed.value)
    assert "\n" not in str(failed.value)
    assert server.sent_bytes < 20 * 2**20


@pytest.mark.parametrize("answer", ["[]", "{}", '{"results": {}}', "[" * 5_000])
async def test_odd_json_is_no_result(
    server: SearchServer, context: AgentContext, answer: str
) -> None:
    server.trouble = answer
    with pytest.raises(ToolError, match=r"did not answer with JSON|something else than results"):
        await searched(SearchService(server.url), context)


async def test_odd_results_are_left_out(server: SearchServer, context: AgentContext) -> None:
    server.trouble = '{"results": [1, {"url": 2}, {"url": "http://a.example", "content": 3}]}'
    found = await searched(SearchService(server.url), context)
    assert found == "1. http://a.example\nhttp://a.example"
    server.trouble = server.trouble.replace("[", f"[{'1, ' * 100}")  # 99,000 took 0.1 s
    assert await searched(SearchService(server.url), context) == "Nothing was found."


@pytest.mark.usefixtures("server")
async def test_a_wrong_key_or_a_lost_service_is_told(context: AgentContext) -> None:
    with pytest.raises(ToolError, match="does not take its key"):
        await searched(SearchService("wrong"), context)
    with pytest.raises(ToolError, match="cannot be reached"):
        await searched(SearchService("http://127.0.0.1:9"), context)


async def test_a_search_is_made(server: SearchServer, settings_of: SettingsOf) -> None:
    for named, name in ((KEY, "Brave"), (f"{server.url}/", "SearXNG")):
        [row] = (await rows_of(check_web_search(settings_of(search=named)))).values()
        assert (row.verdict, row.seen) == ("ok", f"{name} answers (1 results)")


async def test_without_a_service_nothing_is_asked(settings_of: SettingsOf) -> None:
    [unset] = (await rows_of(check_web_search(settings_of()))).values()
    [off] = (await rows_of(check_web_search(settings_of(web="off", search=KEY)))).values()
    assert (unset.verdict, unset.seen) == ("ok", "off: SEARCH is not set")
    assert (off.verdict, off.seen) == ("ok", "off: WEB=off")


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("wrong" * 5, "check SEARCH: the address of a SearXNG, or a key of Brave's web search API"),
        ("", "allow json in search.formats of the settings.yml of this SearXNG"),
        (KEY, "look at its search engines"),
    ],
)
async def test_what_is_wrong_is_named_with_its_setting(
    server: SearchServer, settings_of: SettingsOf, key: str, advice: str
) -> None:
    server.allows_json, server.pages = False, ()
    [row] = (await rows_of(check_web_search(settings_of(search=key or server.url)))).values()
    assert (row.verdict, row.advice) == ("warn", advice)
    assert KEY not in row.seen
