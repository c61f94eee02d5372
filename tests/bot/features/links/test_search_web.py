"""`search_web`: few short results of the operator's search service, and one line for trouble."""

from collections.abc import AsyncIterator

import pytest

from bot.features.links.search_web import SearchService, SearchWebArguments, search_web_tool
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import ToolError
from tests.servers.search_service import KEY, SearchServer

WHALES = ("https://sea.example/whales", "A <b>whale</b> weighs\n190&nbsp;t.")


@pytest.fixture
async def server() -> AsyncIterator[SearchServer]:
    async with SearchServer(WHALES) as running:
        yield running


async def searched(service: SearchService, context: AgentContext, query: str = "whales") -> str:
    return await search_web_tool(service).run(SearchWebArguments(query=query), context)


async def test_both_kinds_of_services_give_title_address_and_short_text(
    server: SearchServer, context: AgentContext
) -> None:
    brave, searxng = SearchService(server.brave, KEY), SearchService(server.url, None)
    url, _ = WHALES
    expected = f"1. About {url}\n{url}\nA whale weighs 190 t."
    assert await searched(brave, context) == expected
    assert await searched(searxng, context) == expected
    assert await searched(SearchService(f"{server.url}/search", None), context) == expected
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
    text = await searched(SearchService(server.url, None), context)
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
        await searched(SearchService(server.brave, KEY), context)
    assert KEY not in str(failed.value)
    assert "\n" not in str(failed.value)
    assert server.sent_bytes < 20 * 2**20


@pytest.mark.parametrize("answer", ["[]", "{}", '{"results": {}}', "[" * 5_000])
async def test_json_of_another_kind_is_no_result(
    server: SearchServer, context: AgentContext, answer: str
) -> None:
    server.trouble = answer
    with pytest.raises(ToolError, match=r"did not answer with JSON|something else than results"):
        await searched(SearchService(server.url, None), context)


async def test_a_result_of_another_kind_is_left_out(
    server: SearchServer, context: AgentContext
) -> None:
    server.trouble = '{"results": [1, {"url": 2}, {"url": "http://a.example", "content": 3}]}'
    found = await searched(SearchService(server.url, None), context)
    assert found == "1. http://a.example\nhttp://a.example"


async def test_a_wrong_key_and_a_service_that_is_away_are_told(
    server: SearchServer, context: AgentContext
) -> None:
    with pytest.raises(ToolError, match="does not take its key"):
        await searched(SearchService(server.brave, "wrong"), context)
    with pytest.raises(ToolError, match="cannot be reached"):
        await searched(SearchService("http://127.0.0.1:9", None), context)
