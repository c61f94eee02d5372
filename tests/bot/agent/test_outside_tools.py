"""Tools of MCP servers: names, order, bounds, and what the model reads of their results."""

import asyncio
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import mcp_types as types
import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bot.agent.toolbox import Toolbox, ToolLimits
from bot.mcp.outside_server import MAX_BYTES, OutsideServer
from bot.mcp.outside_tools import MAX_PER_SERVER, asks_first, list_outside_tools
from config.mcp_servers import McpServer
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, ToolCall, ToolQuestion
from memory.behaviors.tool import Tool, ToolError
from memory.text.tokens import TokenCounter
from tests.bot.agent.test_tool_files import OPUS, png
from tests.servers.dropping import DroppingServer
from tests.servers.mcp_shop import READ, SCHEMA, Shop, ShopServer, shop_tool


def packed(content: bytes) -> str:
    return b64encode(content).decode()


LIMITS = ToolLimits(max_calls_per_tool=3, timeout_s=20, max_output_tokens=2_000)
COMMAND = (sys.executable, "-m", "tests.servers.mcp_shop")


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture(params=[False, True], ids=["sse", "json"])
async def served(shop: Shop, request: pytest.FixtureRequest) -> AsyncIterator[ShopServer]:
    async with ShopServer(shop, json_response=request.param) as server:
        yield server


@pytest.fixture
async def one(shop: Shop) -> AsyncIterator[ShopServer]:
    async with ShopServer(shop) as server:
        yield server


async def listed(
    tokens: TokenCounter, *servers: McpServer, max_tokens: int = 20_000, timeout_s: float = 5
) -> list[Tool[Any]]:
    return await list_outside_tools(servers, tokens, max_tokens, timeout_s)


def names(tools: list[Tool[Any]]) -> list[str]:
    return [tool.name for tool in tools]


async def output(
    tools: list[Tool[Any]], tokens: TokenCounter, context: AgentContext, name: str
) -> str:
    call = ToolCall("1", name, '{"thing": "stamp"}')
    step = await Toolbox(tools, LIMITS, tokens).run(Action((call,)), context)
    assert step.results[0].is_untrusted
    return step.results[0].text


async def test_tools_have_the_name_of_their_server_and_a_fixed_order(
    shop: Shop, served: ShopServer, tokens: TokenCounter, context: AgentContext
) -> None:
    headers = (("x-key", SecretStr("secret")),)
    servers = McpServer("shop", served.address, headers), McpServer("b", served.address)
    tools = await listed(tokens, *servers)
    own = ["order", "picture", "price"]
    assert names(tools) == [f"{server}__{each}" for server in ("b", "shop") for each in own]
    assert tools[-1].definition.parameters == SCHEMA
    only = await listed(tokens, McpServer("shop", served.address, headers, tools=("price",)))
    assert names(only) == ["shop__price"]
    assert await output(only, tokens, context, "shop__price") == shop.result
    assert shop.calls == [("price", {"thing": "stamp"})]
    assert served.headers["x-key"] == "secret"
    seen = await output(tools, tokens, context, "shop__picture")
    assert seen == f"{shop.result}\n[picture.bin is sent to the person with your answer]"


async def test_pictures_sounds_and_resources_become_files_and_texts(
    shop: Shop, one: ShopServer, tokens: TokenCounter, context: AgentContext
) -> None:
    blob = types.BlobResourceContents(uri="file:///a/the%20report.pdf", blob=packed(b"%PDF-1.7"))
    text = types.TextResourceContents(uri="note://1", text="A note.")
    link = types.ResourceLink(type="resource_link", uri="https://x.example", name="x")
    shop.files = [
        types.ImageContent(type="image", data=packed(png()), mime_type="text/plain"),
        types.AudioContent(type="audio", data=packed(OPUS), mime_type="audio/mpeg"),
        types.EmbeddedResource(type="resource", resource=text),
        link,
        types.ImageContent(type="image", data="!", mime_type="image/png"),
        types.EmbeddedResource(type="resource", resource=blob),
    ]
    tools = await listed(tokens, McpServer("shop", one.address))
    sent = "is sent to the person with your answer"
    assert (await output(tools, tokens, context, "shop__picture")).splitlines() == [
        shop.result,
        "A note.",
        "[resource_link came; it is not shown]",
        f"[picture.png {sent}]",
        f"[sound.ogg {sent}]",
        "[picture is not sent: it is empty]",
        f"[the report.pdf {sent}]",
    ]
    assert [(file.kind, file.content) for file in context.files] == [
        ("photo", png()),
        ("voice", OPUS),
        ("document", b"%PDF-1.7"),
    ]


async def test_a_tool_that_asks_runs_only_after_its_person_agreed(
    shop: Shop, one: ShopServer, tokens: TokenCounter, context: AgentContext
) -> None:
    [tool] = await listed(tokens, McpServer("shop", one.address, tools=("order",)))

    async def called(thing: str) -> str:
        return str(await tool.run(tool.arguments.model_validate({"thing": thing}), context))

    with pytest.raises(ToolError, match="nobody here can give it"):
        await called("stamp")
    context.user_message = replace(context.user_message, sender_id=7)
    for unseen in ("x" * 1_000, "stamp\u200b"):
        with pytest.raises(ToolError, match="the person has to see all arguments"):
            await called(unseen)
    assert await called("stamp") == "The person is being asked."
    question = ToolQuestion("shop__order", "shop", "order", '{"thing":"stamp"}')
    assert context.tool_question == question
    with pytest.raises(ToolError, match="one call at a time"):
        await called("cow")
    assert shop.calls == []
    context.is_agreed = True
    assert await called("stamp") == shop.result


async def test_a_command_serves_tools_as_well(tokens: TokenCounter, context: AgentContext) -> None:
    env = (("SHOP_RESULT", SecretStr("Opened.")),)
    tools = await listed(tokens, McpServer("local", command=COMMAND, env=env), timeout_s=20)
    assert names(tools) == ["local__order", "local__picture", "local__price"]
    assert await output(tools, tokens, context, "local__price") == "Opened."
    nothing = McpServer("a", command=("/no/such/program",)), McpServer("b", command=("true",))
    assert await listed(tokens, *nothing) == []


async def test_a_long_list_is_not_read_to_its_end(
    shop: Shop, one: ShopServer, tokens: TokenCounter
) -> None:
    shop.tools = [shop_tool(f"tool-{number:05}") for number in range(10_000)]
    shop.page = 20
    tools = await listed(tokens, *(McpServer(name, one.address) for name in "abc"))
    assert shop.pages == 3 * 2
    assert len(tools) == 64
    assert names(tools)[MAX_PER_SERVER - 1 : MAX_PER_SERVER + 1] == [
        "a__tool-00031",
        "b__tool-00000",
    ]
    some = await listed(tokens, McpServer("a", one.address), max_tokens=200)
    assert 0 < len(some) < 10


async def test_tools_that_the_model_cannot_use_are_left_out(
    shop: Shop, one: ShopServer, tokens: TokenCounter
) -> None:
    huge = {"type": "object", "properties": {"a": {"type": "string", "description": "x" * 5_000}}}
    shop.tools = [
        shop_tool("two words"),
        shop_tool("x" * 70),
        shop_tool("twice"),
        shop_tool("twice"),
        types.Tool(name="huge", input_schema=huge, annotations=READ),
        types.Tool(name="long", description="y " * 5_000, input_schema={"type": "object"}),
    ]
    tools = await listed(tokens, McpServer("shop", one.address))
    assert names(tools) == ["shop__long", "shop__twice"]
    assert len(tools[0].description) == 1_000
    assert tools[0].definition.parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("hints", "asks"),
    [
        (None, True),
        ({}, True),
        ({"readOnlyHint": True}, True),
        ({"destructiveHint": False}, True),
        ({"openWorldHint": False}, True),
        ({"openWorldHint": False, "destructiveHint": True}, True),
        ({"openWorldHint": False, "readOnlyHint": True}, False),
        ({"openWorldHint": False, "destructiveHint": False}, False),
    ],
)
def test_a_tool_asks_unless_its_server_says_that_it_is_harmless(
    hints: dict[str, bool] | None,
    asks: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    annotations = None if hints is None else types.ToolAnnotations.model_validate(hints)
    assert asks_first(annotations) is asks


async def test_a_server_that_goes_away_or_changes_is_explained(
    shop: Shop, tokens: TokenCounter, context: AgentContext
) -> None:
    async with ShopServer(shop) as server:
        tools = await listed(tokens, McpServer("shop", server.address), timeout_s=1)
        shop.result = "x" * (MAX_BYTES + 1)
        too_large = await output(tools, tokens, context, "shop__price")
        assert too_large.startswith("Error: the server shop refused the call or sent an answer")
        shop.is_silent = True
        silent = await output(tools, tokens, context, "shop__price")
        assert silent == "Error: shop__price took too long and was stopped" or (
            "did not answer in time" in silent
        )
    away = await output(tools, tokens, context, "shop__price")
    assert away == "Error: the server shop cannot be reached; it may have done it or not"
    assert await listed(tokens, McpServer("shop", server.address), timeout_s=1) == []


async def test_an_answer_without_an_end_is_not_read_beyond_the_bound() -> None:
    async def flood(_: Request) -> Response:
        async def body() -> AsyncIterator[bytes]:
            while True:
                yield b" " * 2**16
                await asyncio.sleep(0)

        return StreamingResponse(body(), media_type="application/json")

    app = Starlette(routes=[Route("/mcp", flood, methods=["POST"])])
    async with DroppingServer(app) as server:
        outside = OutsideServer(McpServer("shop", f"{server.url}/mcp"), 10)
        with pytest.raises(ToolError, match="sent an answer that cannot be used"):
            await outside.call("price", {})
