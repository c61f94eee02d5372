"""The definition of a tool is a plain JSON schema and never changes."""

from datetime import UTC, date
from typing import Any

from pydantic import Field

from bot.agent.search_memory import search_memory_tool
from bot.features.drawing.feature import Drawer, draw_picture_tool
from bot.features.links.feature import read_page_tool
from bot.features.links.page_fetch import PageFetcher
from bot.features.links.search_web import SearchService, search_web_tool
from bot.features.pictures.feature import SEND_PHOTO_AGAIN
from bot.features.reminders.tools import ReminderTools
from bot.features.tools.calculator import CALCULATE
from bot.features.tools.feature import current_time_tool
from bot.playground.offline_memory import OfflineServer
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool
from memory.memory import Memory
from tests.bot.agent.conftest import echo, tool
from tests.servers.model_api.bodies import schema_complaint


def test_a_definition_holds_only_what_the_model_needs() -> None:
    assert dict(tool("echo", echo).definition.parameters) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The words"},
            "times": {"type": "integer", "default": 1, "minimum": 1, "maximum": 3},
        },
        "required": ["text"],
    }


class Optional(Arguments):
    day: date | None = Field(default=None, description="First day")
    note: str = ""
    either: int | str | None = None


def test_a_definition_offers_neither_null_nor_an_empty_default() -> None:
    async def run(arguments: Optional, context: AgentContext) -> str:
        return f"{arguments} {context}"

    assert Tool("optional", "", Optional, run).definition.parameters["properties"] == {
        "day": {"type": "string", "format": "date", "description": "First day"},
        "note": {"type": "string"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
    }


def test_equal_tools_have_equal_definitions() -> None:
    assert tool("echo", echo).definition == tool("echo", echo).definition


def test_every_server_accepts_our_tools(memory: Memory) -> None:
    searching = search_memory_tool(memory.tokens)
    own: tuple[Tool[Any], ...] = (
        CALCULATE,
        current_time_tool(),
        searching,
        SEND_PHOTO_AGAIN,
        draw_picture_tool(Drawer(OfflineServer(), "pen", 10)),
        read_page_tool(PageFetcher()),
        search_web_tool(SearchService("http://search.example")),
    )
    for ours in (*own, *ReminderTools(memory.work, memory.scopes, UTC).functions):
        assert schema_complaint(ours.definition.parameters, strict=False) == ""
        assert len(ours.description) <= 1024
