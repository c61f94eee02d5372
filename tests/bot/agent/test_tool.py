"""The definition of a tool is a plain JSON schema and never changes."""

from datetime import UTC
from typing import Any

from bot.agent.tools.calculate import CALCULATE
from bot.agent.tools.current_time import current_time_tool
from bot.agent.tools.search_memory import search_memory_tool
from memory.behaviors.reminder_tools import ReminderTools
from memory.behaviors.tool import Tool
from memory.memory import Memory
from tests.bot.agent.tools import echo, tool
from tests.servers.model_api.schemas import schema_complaint


def test_a_definition_holds_only_what_the_model_needs() -> None:
    assert dict(tool("echo", echo).definition.parameters) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The words", "maxLength": 1_000_000},
            "times": {"type": "integer", "default": 1, "minimum": 1, "maximum": 3},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


def test_equal_tools_have_equal_definitions() -> None:
    assert tool("echo", echo).definition == tool("echo", echo).definition


def test_every_server_accepts_our_tools(memory: Memory) -> None:
    searching = search_memory_tool(UTC, memory.tokens)
    own: tuple[Tool[Any], ...] = (CALCULATE, current_time_tool(UTC), searching)
    for ours in (*own, *ReminderTools(memory.reminders, memory.time_zones, UTC).functions):
        assert schema_complaint(ours.definition.parameters, strict=False) == ""
        assert len(ours.description) <= 1024
