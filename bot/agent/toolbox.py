"""Runs the calls of one action concurrently; errors of tools become texts for the model.

A slow or broken tool does not end a run. A lost lease or an unavailable store does, because the
turn is over then. Texts of exceptions appear only in the log.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import ValidationError

from bot.agent.tool_files import attach
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, CompletedStep, ToolCall, ToolResult
from memory.behaviors.tool import Arguments, Tool, ToolDefinition, ToolError
from memory.behaviors.tool_output import ToolOutput
from memory.behaviors.trust import held_back
from memory.store.errors import LeaseLost, StoreError
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import UNTRUSTED_MARK

log = structlog.get_logger(__name__)


class ToolNameClash(Exception):
    """Raised when two tools have one name."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits: calls of one tool in a turn, seconds of one call, tokens of one output.

    A tool may have a time limit of its own.
    """

    max_calls_per_tool: int
    timeout_s: float
    max_output_tokens: int


class Toolbox:
    """The tools of a bot, in the order of the prompt; raises `ToolNameClash`."""

    def __init__(
        self, tools: Sequence[Tool[Any]], limits: ToolLimits, tokens: TokenCounter
    ) -> None:
        names = Counter(tool.name for tool in tools)
        if clashing := [name for name, count in names.items() if count > 1]:
            raise ToolNameClash(f"two tools are named {clashing[0]}")
        self._tools = {tool.name: tool for tool in tools}
        self._limits = limits
        self._tokens = tokens
        self.definitions: tuple[ToolDefinition, ...] = tuple(tool.definition for tool in tools)

    async def run(self, action: Action, context: AgentContext) -> CompletedStep:
        """Run all calls of an action; return the step, with results in the order of the calls.

        Raise `LeaseLost` or `StoreError` from a tool, after cancelling the other calls.
        """
        earlier = [call for step in context.completed_steps for call in step.action.calls]
        runs = Counter(call.name for call in earlier if self._can_run(call))
        running, earlier_writes = [], len(context.writes)
        try:
            async with asyncio.TaskGroup() as group:
                for call in action.calls:
                    runs[call.name] += self._can_run(call)
                    run = self._run(call, runs[call.name], context)
                    running.append(group.create_task(run))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        # Tools of operators do not check themselves whether a write needs the person's consent.
        new_writes = context.writes[earlier_writes:]
        context.writes[earlier_writes:] = [held_back(context, write) for write in new_writes]
        return CompletedStep(action, tuple(task.result() for task in running))

    def final_output(self, step: CompletedStep) -> str | None:
        """Return the output of a final tool that succeeded in this step, or None."""
        for call, result in zip(step.action.calls, step.results, strict=True):
            tool = self._tools.get(call.name)
            if tool is not None and tool.is_final and not result.failed:
                return result.text
        return None

    async def _run(self, call: ToolCall, nth: int, context: AgentContext) -> ToolResult:
        named = self._tools.get(call.name)
        is_untrusted = named is None or named.is_untrusted
        began = time.time() if named else 0.0
        try:
            tool, arguments = self._ready(call)
            text = await self._output(tool, arguments, nth, context)
            is_whole, failed = tool.is_final, False
            is_untrusted = is_untrusted or UNTRUSTED_MARK in text
            files = text.files if isinstance(text, ToolOutput) else ()
        except ToolError as error:
            text, is_whole, failed, files = f"Error: {error}", False, True, ()
        about_files = await attach(files, context)
        if not is_whole:
            text = self._tokens.shorten(text, self._limits.max_output_tokens)
            text = "\n".join((text, *about_files))
        return ToolResult(
            call_id=call.id,
            text=text,
            failed=failed,
            is_untrusted=is_untrusted,
            began_at=began,
            ended_at=time.time(),
            is_reader=named is not None and named.is_reader,
        )

    def _ready(self, call: ToolCall) -> tuple[Tool[Any], Arguments]:
        """Return the tool and its validated arguments; raise `ToolError`."""
        tool = self._tools.get(call.name)
        if tool is None:
            raise ToolError(f"there is no tool {call.name!r}; there are: {', '.join(self._tools)}")
        try:
            return tool, tool.arguments.model_validate_json(call.arguments or "{}")
        except ValidationError as error:
            raise ToolError(f"wrong arguments: {_explained(error)}") from error

    def _can_run(self, call: ToolCall) -> bool:
        """Return whether a call counts as run; one with wrong arguments does not."""
        try:
            self._ready(call)
        except ToolError:
            return False
        return True

    async def _output(
        self, tool: Tool[Any], arguments: Arguments, nth: int, context: AgentContext
    ) -> str:
        if context.is_off_record and tool.uses_memory:
            raise ToolError(
                "the person talks off the record: nothing can be looked up in the memory and "
                "nothing is kept until they write /back"
            )
        max_calls = self._limits.max_calls_per_tool
        if nth > max_calls:
            raise ToolError(f"{tool.name} may run {max_calls} times for one answer, and did")
        try:
            async with asyncio.timeout(tool.timeout_s or self._limits.timeout_s):
                return await tool.run(arguments, context)
        except (ToolError, LeaseLost, StoreError):
            raise
        except TimeoutError as error:
            log.warning("tool too slow", tool=tool.name)
            raise ToolError(f"{tool.name} took too long and was stopped") from error
        except Exception as error:
            log.exception("tool failed", tool=tool.name)
            raise ToolError(f"{tool.name} failed; try without it") from error


def _explained(error: ValidationError) -> str:
    """Return what each wrong field has to be, without a quotation of the input."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
        for each in error.errors(include_input=False, include_url=False)
    )
