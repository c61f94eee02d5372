"""The agent: decides, acts, decides again. A refused prompt is tried again with less.

A filter of the server may refuse the person's message, its pictures, or another part of the
prompt. So the model is asked without the pictures first. If the server refuses that, too, the
message is sent alone. It counts as refused only if the server accepts a harmless one in its place.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from bot.agent.toolbox import Toolbox
from bot.model.call import NO_LABELS, CallLabels, ChatModel, PromptMessage
from bot.model.model_errors import ContextTooLong, ModelError, ModelRefused
from bot.prompt.assemble import beside_others
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, FinishAction
from memory.behaviors.tool import ToolDefinition
from memory.work.item import WorkChanges

Assemble = Callable[[AgentContext], Sequence[PromptMessage]]
"""Returns the whole prompt, including the steps of this run so far."""
RunAgent = Callable[[AgentContext], Awaitable[FinishAction]]
"""Answers what a context holds; raises what `run_agent` raises."""

CUT_OFF = " […]"
"""Shown after a reply that reached its token limit."""


class Agent(Protocol):
    """Decides what to do next. Ours is `FunctionsBasedAgent`; an operator may name another."""

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return an action or the answer; it reads the steps of this run from the context."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class FunctionsBasedAgent:
    """Asks the model, always with the same tools; after `max_steps` steps the model must answer."""

    model: ChatModel
    assemble: Assemble
    tools: Sequence[ToolDefinition]
    max_steps: int
    labels: Callable[[AgentContext], CallLabels] = lambda _: NO_LABELS

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return the tool calls that the model asks for, or its answer; raise `ModelError`.

        Calls are read only from their own field. A text that looks like a call is an answer.
        """
        must_answer = len(context.completed_steps) >= self.max_steps
        reply = await self.model.complete(
            await beside_others(self.assemble, context),
            self.tools,
            tool_choice="none" if must_answer else "auto",
            labels=self.labels(context),
        )
        context.is_blind = reply.is_blind
        if reply.tool_calls and not must_answer:
            return Action(reply.tool_calls, reply.text, reply.reasoning)
        # Some servers ignore "none". Then the answer is the text that came with the calls.
        cut_off = CUT_OFF if reply.text and reply.finish_reason == "length" else ""
        return FinishAction(reply.text + cut_off)


log = structlog.get_logger(__name__)

_HARMLESS = "Hello"


class MessageRefused(Exception):
    """Raised when the server refuses this message but accepts others; the cause says why."""


class PicturesDeclined(Exception):
    """Raised when the server refuses the pictures of a message, and the answer without them fails.

    The cause is the refusal.
    """


async def run_agent(
    agent: Agent, toolbox: Toolbox, context: AgentContext, *, tries_less: bool = True
) -> FinishAction:
    """Return the answer to the context's message; raise `ModelError`, `LeaseLost` or `StoreError`.

    Each step of this run is added to `completed_steps`. A tool that asks the person first ends the
    run with an empty answer. After a refusal the run tries again with less: that may raise
    `PicturesDeclined` or `MessageRefused` as well.
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
    beside = (context.window, context.recalled, context.memory_context, context.replies)
    if any(beside) or context.completed_steps:
        log.warning("message tried alone", status=refusal.status, code=refusal.code)
        context.window, context.recalled, context.memory_context = (), (), ""
        context.replies = ()
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
    if await _accepts(agent, replace(harmless, pictures=())):
        raise MessageRefused from refusal
    raise refusal


async def _without_pictures(
    agent: Agent, toolbox: Toolbox, context: AgentContext, refusal: ModelRefused
) -> FinishAction | None:
    """Go on without the pictures, after the steps so far.

    Return None, with the pictures back in the context, if the server refuses this as well. Raise
    `PicturesDeclined` if no answer comes for another reason.
    """
    pictures, steps = context.pictures, len(context.completed_steps)
    context.pictures, context.are_pictures_refused = (), True
    try:
        answer = await run_agent(agent, toolbox, context, tries_less=False)
    except ModelError as error:
        is_refused = isinstance(error, ModelRefused) and len(context.completed_steps) == steps
        if not is_refused:
            raise PicturesDeclined from refusal
        context.pictures, context.are_pictures_refused = pictures, False
        return None
    log.warning("pictures refused", status=refusal.status, code=refusal.code)
    return answer


async def _accepts(agent: Agent, context: AgentContext) -> bool:
    """Return whether the server answers a prompt; no tool runs, and nothing is stored."""
    try:
        await agent.next_action(replace(context, writes=[]))
    except ModelError:
        return False
    return True
