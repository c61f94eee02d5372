"""Runs the calls of one action side by side; whatever goes wrong becomes a text for the model.

Neither a slow nor a broken tool ends a run. Texts of exceptions stay in the log.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import ValidationError

from bot.agent.tool import Tool, ToolError
from bot.model.values import ToolDefinition
from memory.context import AgentContext
from memory.steps import Action, CompletedStep, ToolCall, ToolResult
from memory.tokens import TokenCounter

log = structlog.get_logger(__name__)


class ToolNameClash(Exception):  # noqa: N818 - says when
    """Raised when two tools have one name."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """How often one tool may run in a turn, for how long, and how much it may say."""

    calls_per_tool: int
    timeout_s: float
    output_tokens: int


class Toolbox:
    """The tools of the bot, in the order in which the model is told of them."""

    def __init__(
        self, tools: Sequence[Tool[Any]], limits: ToolLimits, tokens: TokenCounter
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            raise ToolNameClash(", ".join(tool.name for tool in tools))
        self._limits = limits
        self._tokens = tokens
        self.definitions: tuple[ToolDefinition, ...] = tuple(tool.definition for tool in tools)

    async def run(self, action: Action, context: AgentContext) -> CompletedStep:
        """Run all calls of an action and return the step, results in the order of the calls."""
        used = Counter(call.name for step in context.completed_steps for call in step.action.calls)
        runs = []
        for call in action.calls:
            used[call.name] += 1
            runs.append(self._run(call, used[call.name], context))
        return CompletedStep(action, tuple(await asyncio.gather(*runs)))

    def final_output(self, step: CompletedStep) -> str | None:
        """Return the output of a final tool that succeeded in this step, if there is one."""
        for call, result in zip(step.action.calls, step.results, strict=True):
            tool = self._tools.get(call.name)
            if tool is not None and tool.is_final and not result.failed:
                return result.text
        return None

    async def _run(self, call: ToolCall, nth: int, context: AgentContext) -> ToolResult:
        try:
            output = await self._output(call, nth, context)
        except ToolError as error:
            return ToolResult(call.id, f"Error: {error}", failed=True)
        return ToolResult(call.id, self._tokens.shorten(output, self._limits.output_tokens))

    async def _output(self, call: ToolCall, nth: int, context: AgentContext) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            raise ToolError(f"there is no tool {call.name!r}; there are: {', '.join(self._tools)}")
        if nth > self._limits.calls_per_tool:
            raise ToolError(f"{call.name} was used {nth - 1} times, which is all it may be")
        try:
            arguments = tool.arguments.model_validate_json(call.arguments or "{}")
        except ValidationError as error:
            raise ToolError(f"wrong arguments: {_explained(error)}") from error
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                return await tool.run(arguments, context)
        except ToolError:
            raise
        except TimeoutError as error:
            log.warning("tool too slow", tool=call.name)
            raise ToolError(f"{call.name} took too long and was stopped") from error
        except Exception as error:
            log.exception("tool failed", tool=call.name)
            raise ToolError(f"{call.name} failed; try without it") from error


def _explained(error: ValidationError) -> str:
    """Say for each field what is expected, without quoting what came."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
        for each in error.errors(include_input=False, include_url=False)
    )
