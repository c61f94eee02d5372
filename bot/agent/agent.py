"""The agent: decides, acts, decides again. A refused prompt is tried again with less.

The calls of one action run concurrently. A slow or broken tool does not end a run: its error
becomes a text for the model. A lost lease or an unavailable store does, because the turn is over
then. Texts of exceptions appear only in the log.

A filter of the server may refuse the person's message, its pictures, or another part of the
prompt. So the model is asked without the pictures first. If the server refuses that, too, the
message is sent alone. It counts as refused only if the server accepts a harmless one in its place.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog
from pydantic import ValidationError

from bot.agent.tool_files import attach
from bot.model.call import CallLabels, ChatModel, ModelRequest
from bot.model.model_errors import ContextTooLong, ModelError, ModelRefused
from bot.prompt.assemble import Prompt, in_thread_if_long
from memory.behaviors.behavior import FunctionNameClash
from memory.behaviors.context import AgentContext, Background
from memory.behaviors.steps import Action, CompletedStep, FinishAction, ToolCall, ToolResult
from memory.behaviors.tool import Arguments, Tool, ToolDefinition, ToolError, held_back
from memory.behaviors.tool_output import ToolOutput
from memory.store.errors import LeaseLost, StoreError
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import UNTRUSTED_MARK
from memory.work.item import WorkChanges

log = structlog.get_logger(__name__)

_MAX_ERRORS = 20
"""A call with more wrong arguments gets their number only: to list thousands takes seconds."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits: calls of one tool in a turn, seconds of one call, tokens of one output.

    A tool may have a time limit of its own.
    """

    max_calls_per_tool: int
    timeout_s: float
    max_output_tokens: int


class Toolbox:
    """The tools of a bot, in the order of the prompt; raises `FunctionNameClash`."""

    def __init__(
        self, tools: Sequence[Tool[Any]], limits: ToolLimits, tokens: TokenCounter
    ) -> None:
        names = Counter(tool.name for tool in tools)
        if clashing := [name for name, count in names.items() if count > 1]:
            raise FunctionNameClash(f"two tools are named {clashing[0]}")
        self._tools = {tool.name: tool for tool in tools}
        self._limits = limits
        self._tokens = tokens
        self.definitions: tuple[ToolDefinition, ...] = tuple(tool.definition for tool in tools)

    async def run(self, action: Action, context: AgentContext) -> CompletedStep:
        """Run all calls of an action; return the step, with results in the order of the calls.

        Raise `LeaseLost` or `StoreError` from a tool, after cancelling the other calls.
        """
        runs = Counter(
            call.name
            for step in context.completed_steps
            for call, result in zip(step.action.calls, step.results, strict=True)
            if result.began_at
        )
        earlier_writes = len(context.writes)
        try:
            async with asyncio.TaskGroup() as group:
                running = [
                    group.create_task(self._run(call, runs, context)) for call in action.calls
                ]
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

    async def _run(self, call: ToolCall, runs: Counter[str], context: AgentContext) -> ToolResult:
        named = self._tools.get(call.name)
        is_untrusted = named is None or named.is_untrusted
        began = 0.0
        try:
            tool, arguments = self._ready(call)
            began = time.time()
            runs[tool.name] += 1
            text = await self._output(tool, arguments, runs[tool.name], context)
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
            if error.error_count() > _MAX_ERRORS:
                raise ToolError(f"wrong arguments: {error.error_count()} errors") from error
            errors = []
            for each in error.errors(include_input=False, include_url=False):
                place = ".".join(map(str, each["loc"])) or "arguments"
                errors.append(f"{place}: {each['msg']}")
            raise ToolError(f"wrong arguments: {'; '.join(errors)}") from error

    async def _output(
        self, tool: Tool[Any], arguments: Arguments, nth: int, context: AgentContext
    ) -> str:
        if tool.uses_memory and not context.uses_memory:
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


RunAgent = Callable[[AgentContext], Awaitable[FinishAction]]
"""Answers what a context holds; raises what `run_agent` raises."""

CUT_OFF = " […]"  # shown after a reply that reached its token limit


class Agent(Protocol):
    """Decides what to do next. Ours is `FunctionsBasedAgent`; an operator may name another."""

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return an action or the answer; it reads the steps of this run from the context."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionsBasedAgent:
    """Asks the model, always with the same tools; after `max_steps` steps the model must answer."""

    model: ChatModel
    assemble: Callable[[AgentContext], Prompt]  # with the steps of this run so far
    tools: Sequence[ToolDefinition]
    max_steps: int
    bot_id: int = 0  # for the labels of calls
    names_people: bool = False  # in these labels

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return the tool calls that the model asks for, or its answer; raise `ModelError`.

        Calls are read only from their own field. A text that looks like a call is an answer.
        """
        must_answer = len(context.completed_steps) >= self.max_steps
        prompt = await in_thread_if_long(self.assemble, context)
        context.used, context.sizes = prompt.used, prompt.sizes
        person = context.user_message.sender_id if self.names_people else 0
        labels = CallLabels.of(self.bot_id, context.conversation.tag, person)
        reply = await self.model.complete(
            ModelRequest(prompt.messages, self.tools, "none" if must_answer else "auto", labels)
        )
        context.is_blind = reply.is_blind
        if reply.tool_calls and not must_answer:
            return Action(reply.tool_calls, reply.text, reply.reasoning)
        # Some servers ignore "none". Then the answer is the text that came with the calls.
        cut_off = CUT_OFF if reply.text and reply.finish_reason == "length" else ""
        return FinishAction(reply.text + cut_off)


_HARMLESS = "Hello"


class MessageRefused(Exception):
    """Raised when the server refuses this message but accepts others; the cause says why."""


class PartDeclined(Exception):
    """Raised when no answer comes without a refused part; its text is the key of what to say."""


async def run_agent(
    agent: Agent, toolbox: Toolbox, context: AgentContext, *, tries_less: bool = True
) -> FinishAction:
    """Return the answer to the context's message; raise `ModelError`, `LeaseLost` or `StoreError`.

    Each step of this run is added to `completed_steps`. A tool that asks the person first ends the
    run with an empty answer. After a refusal the run tries again with less: that may raise
    `PartDeclined` or `MessageRefused` as well.
    """
    steps, writes, files = len(context.completed_steps), len(context.writes), len(context.files)
    try:
        action = await agent.next_action(context)
        while isinstance(action, Action):
            step = await toolbox.run(action, context)
            context.completed_steps.append(step)
            if context.tool_question:
                return FinishAction("")
            final = toolbox.final_output(step)
            if final is not None:
                return FinishAction(final)
            action = await agent.next_action(context)
    except ModelRefused as refusal:
        if not (tries_less and refusal.may_concern_messages):
            raise
        return await _with_less(agent, toolbox, context, refusal, (steps, writes, files))
    return action


async def _with_less(
    agent: Agent,
    toolbox: Toolbox,
    context: AgentContext,
    refusal: ModelRefused,
    before: tuple[int, int, int],
) -> FinishAction:
    """Return the answer to a prompt of which the server refused something.

    First the pictures are left out. If that does not help, they come back and all else is left
    out: window, replies, search results, memory context, and what tools did in this run, which had
    so many steps, writes and files `before`.
    """
    if context.pictures and not isinstance(refusal, ContextTooLong):
        answer = await _without_pictures(agent, toolbox, context, refusal)
        if answer is not None:
            return answer
    if context.background != Background() or context.completed_steps:
        log.warning("message tried alone", status=refusal.status, code=refusal.code)
        context.background = Background()
        steps, writes, files = before
        del context.completed_steps[steps:], context.writes[writes:], context.files[files:]
        context.work = WorkChanges()
        try:
            return await run_agent(agent, toolbox, context, tries_less=False)
        except ModelRefused as error:
            refusal = error
    if not refusal.may_concern_messages:
        raise refusal
    # If the server refuses a harmless message as well, it refuses a parameter, the system prompt or
    # a tool, and the operator has to act.
    message = replace(context.user_message, text=_HARMLESS)
    harmless = replace(context, user_message=message, user_messages=(), completed_steps=[])
    with suppress(ModelError):  # no tool runs, and nothing is stored
        await agent.next_action(replace(harmless, pictures=(), writes=[]))
        raise MessageRefused from refusal
    raise refusal


async def _without_pictures(
    agent: Agent, toolbox: Toolbox, context: AgentContext, refusal: ModelRefused
) -> FinishAction | None:
    """Go on without the pictures, after the steps so far.

    Return None, with the pictures back in the context, if the server refuses this as well. Raise
    `PartDeclined` if no answer comes for another reason.
    """
    pictures, steps = context.pictures, len(context.completed_steps)
    context.pictures, context.are_pictures_refused = (), True
    try:
        answer = await run_agent(agent, toolbox, context, tries_less=False)
    except ModelError as error:
        is_refused = isinstance(error, ModelRefused) and len(context.completed_steps) == steps
        if not is_refused:
            raise PartDeclined("pictures.refused") from refusal
        context.pictures, context.are_pictures_refused = pictures, False
        return None
    log.warning("pictures refused", status=refusal.status, code=refusal.code)
    return answer
