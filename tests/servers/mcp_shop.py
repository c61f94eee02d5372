"""A real MCP server of the `mcp` library, over HTTP on loopback or as a command.

As a command: `python -m tests.servers.mcp_shop`.
"""

import asyncio
import os
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.servers.dropping import DroppingServer

READ = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"thing": {"type": "string"}},
    "required": ["thing"],
}


def shop_tool(name: str, hints: types.ToolAnnotations | None = READ) -> types.Tool:
    """Return a tool that takes the name of a thing."""
    return types.Tool(
        name=name, description=f"The {name} of a thing", input_schema=SCHEMA, annotations=hints
    )


class Shop:
    """What the server offers and does; `calls` are the calls so far, `pages` the lists asked for.

    `page` is how many tools it lists at once. `files` come with the result of "picture". While
    `is_silent`, calls are not answered.
    """

    def __init__(self) -> None:
        self.tools = [shop_tool("price"), shop_tool("picture"), shop_tool("order", None)]
        self.page = 1_000
        self.pages = 0
        self.result = "It costs 5 crowns."
        self.files: list[types.ContentBlock] = [
            types.ImageContent(type="image", data="AAAA", mime_type="image/png")
        ]
        self.is_silent = False
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.called = asyncio.Event()
        self.server = Server[Any](
            "shop", on_list_tools=self._list_tools, on_call_tool=self._call_tool
        )

    async def _list_tools(
        self, _: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        self.pages += 1
        at = int(params.cursor) if params and params.cursor else 0
        end = at + self.page
        cursor = str(end) if end < len(self.tools) else None
        return types.ListToolsResult(tools=self.tools[at:end], next_cursor=cursor)

    async def _call_tool(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.calls.append((params.name, params.arguments or {}))
        self.called.set()
        if self.is_silent:
            await asyncio.Event().wait()
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=self.result)]
        if params.name == "picture":
            content += self.files
        return types.CallToolResult(content=content, is_error=params.name == "broken")


class ShopServer(DroppingServer):
    """Serves a shop at `address`; `headers` are those of the newest request."""

    def __init__(self, shop: Shop, *, json_response: bool = False) -> None:
        self.headers: dict[str, str] = {}
        self._shop = shop
        self._app = shop.server.streamable_http_app(json_response=json_response)
        self._ending = asyncio.Event()
        self._sessions: asyncio.Task[None]
        super().__init__(self._watched(self._app))  # type: ignore[arg-type]

    @property
    def address(self) -> str:
        """The address for `MCP_SERVERS`."""
        return f"{self.url}/mcp"

    async def start(self) -> None:
        """Run the sessions, then serve."""
        ready = asyncio.Event()
        self._sessions = asyncio.create_task(self._run_sessions(ready))
        await ready.wait()
        await super().start()

    async def stop(self) -> None:
        """Cut all connections, then end the sessions."""
        await super().stop()
        self._ending.set()
        await self._sessions

    async def _run_sessions(self, ready: asyncio.Event) -> None:
        # One task enters and leaves them.
        async with self._shop.server.session_manager.run():
            ready.set()
            await self._ending.wait()

    def _watched(self, app: ASGIApp) -> ASGIApp:
        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self.headers = dict(Request(scope).headers)
            await app(scope, receive, send)

        return watched


async def _main() -> None:
    shop = Shop()
    shop.result = os.environ.get("SHOP_RESULT", shop.result)
    server = shop.server
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_main())
