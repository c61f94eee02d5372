"""A context on a real, empty store, also for tools that search the history; tools for tests."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import Field

from bot.agent.agent import Toolbox, ToolLimits
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, ToolCall
from memory.behaviors.tool import Arguments, Tool
from memory.memory import Memory
from tests.memory.conftest import TOKENS
from tests.memory.words_embedder import WordsEmbedder

NOON = 1_762_948_800.0  # Wednesday, 12 November 2025, 12:00 UTC


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()


@pytest.fixture
async def context(memory: Memory) -> AgentContext:
    return await AgentContext.get_or_create({"chat_id": 7}, memory.histories, now=NOON)


LIMITS = ToolLimits(max_calls_per_tool=3, timeout_s=5, max_output_tokens=50)


class Echoed(Arguments):
    """A text to repeat."""

    text: str = Field(description="The words", max_length=1_000_000)
    times: int = Field(default=1, ge=1, le=3)


def tool(
    name: str, run: Callable[[Echoed, AgentContext], Awaitable[str]], *, is_final: bool = False
) -> Tool[Echoed]:
    return Tool(name, f"The tool {name}", Echoed, run, is_final)


async def echo(arguments: Echoed, _: AgentContext) -> str:
    return arguments.text * arguments.times


def toolbox_of(*tools: Tool[Any], limits: ToolLimits = LIMITS) -> Toolbox:
    return Toolbox(tools or (tool("echo", echo),), limits, TOKENS)


def calls(*arguments: str, name: str = "echo") -> Action:
    """Return an action that calls a tool once for each JSON text, with ids from 0 upwards."""
    return Action(tuple(ToolCall(str(number), name, text) for number, text in enumerate(arguments)))
