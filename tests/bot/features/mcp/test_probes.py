"""What the check finds out about MCP servers."""

import orjson

from bot.features.mcp.probes import PROBES
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.mcp_shop import Shop, ShopServer


async def test_each_server_has_a_row_with_the_number_of_its_tools(settings_of: SettingsOf) -> None:
    async with ShopServer(Shop()) as server:
        servers = {
            "shop": {"url": server.address},
            "none": {"url": server.address, "tools": []},
            "away": {"url": "http://127.0.0.1:9/mcp"},
        }
        settings = settings_of(mcp_servers=orjson.dumps(servers).decode())
        rows = await rows_of(PROBES[0].run(settings))
    assert {name: (row.verdict, row.seen) for name, row in rows.items()} == {
        "MCP server away": ("warn", "no answer"),
        "MCP server none": ("warn", "0 tools"),
        "MCP server shop": ("ok", "3 tools"),
    }
    assert "MCP_SERVERS" in rows["MCP server away"].advice
