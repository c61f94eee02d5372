"""The settings of tools from outside."""

from typing import Annotated

from pydantic import Field
from pydantic_settings import NoDecode

from bot.features.mcp.mcp_servers import McpServer, read_mcp_servers
from config import values
from config.settings import Settings

McpServers = Annotated[
    tuple[McpServer, ...],
    NoDecode,
    values.on_text(read_mcp_servers),
    values.Allowed(
        '`{"name": {"url": …, "headers": {…}, "tools": […]}}` or `{"name": {"command": […], '
        '"env": {…}}}`, or the path of a JSON file'
    ),
]


class McpSettings(Settings):
    """Tools from outside, beside the settings of the core."""

    mcp_servers: McpServers = Field(
        default=(), description="MCP servers whose tools the model may use"
    )


SETTINGS = McpSettings
