"""What tools from outside add to the bot. The library takes a second to import."""

from collections.abc import Sequence
from typing import Any

from bot.feature import Feature, Services
from bot.features.mcp.outside_tools import list_outside_tools
from bot.features.mcp.settings import McpSettings
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.tool import Tool

_SHARE = 0.4
"""The definitions of these tools take at most this share of the prompt."""


class OutsideTools(AIContextBehavior):
    """The tools of MCP servers."""

    name = "mcp"
    gives_way = True

    def __init__(self, functions: Sequence[Tool[Any]]) -> None:
        self.functions = functions


async def feature(services: Services) -> Feature:
    """Return the feature, with the tools that the servers have now."""
    settings = services.own(McpSettings)
    tools = await list_outside_tools(
        settings.mcp_servers,
        services.memory.tokens,
        int(settings.prompt_tokens * _SHARE),
        settings.tool_timeout_s,
    )
    return Feature(name="mcp", behaviors=[OutsideTools(tools)])
