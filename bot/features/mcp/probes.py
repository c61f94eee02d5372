"""The MCP servers: does each answer, and how many tools has it. The bot also starts without one."""

import asyncio

from bot.features.mcp.settings import McpServer, McpSettings
from bot.probe import Probe, Row, Rows


async def _servers(settings: McpSettings) -> Rows:
    limit_s = settings.tool_timeout_s
    for row in await asyncio.gather(*(_row(each, limit_s) for each in settings.mcp_servers)):
        yield row


async def _row(server: McpServer, timeout_s: float) -> Row:
    from bot.features.mcp.feature import usable_tools  # noqa: PLC0415 - it takes a second
    from bot.features.mcp.outside_server import ServerAway  # noqa: PLC0415 - as above

    what = f"MCP server {server.name}"
    try:
        tools = await usable_tools(server, timeout_s)
    except ServerAway as away:
        advice = f"look at its entry in MCP_SERVERS ({away}); the bot starts without its tools"
        return Row(what, "warn", "no answer", advice)
    if not tools:
        return Row(what, "warn", "0 tools", "look at its list of tools in MCP_SERVERS")
    return Row(what, "ok", f"{len(tools)} tools")


PROBES = (Probe("Tools from outside", _servers),)
