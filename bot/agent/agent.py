"""`FunctionsBasedAgent`: reads a context and decides the next action.

It only decides. The loop around it, which runs the tools, is `run_agent` in `refused.py`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from bot.model.call import NO_LABELS, CallLabels, ChatModel, PromptMessage
from bot.prompt.assemble import beside_others
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, FinishAction
from memory.behaviors.tool import ToolDefinition

Assemble = Callable[[AgentContext], Sequence[PromptMessage]]
"""Returns the whole prompt, including the steps of this run so far."""

CUT_OFF = " […]"
"""Shown after a reply that reached its token limit."""


class Agent(Protocol):
    """Decides what to do next. Ours is `FunctionsBasedAgent`; an operator may name another."""

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return an action or the answer; it reads the steps of this run from the context."""
        ...


class FunctionsBasedAgent:
    """Asks the model, always with the same tools; after `max_steps` steps the model must answer."""

    def __init__(
        self,
        model: ChatModel,
        assemble: Assemble,
        tools: Sequence[ToolDefinition],
        max_steps: int,
        labels: Callable[[AgentContext], CallLabels] = lambda _: NO_LABELS,
    ) -> None:
        self._model = model
        self._assemble = assemble
        self._tools = tools
        self._max_steps = max_steps
        self._labels = labels

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return the tool calls that the model asks for, or its answer; raise `ModelError`.

        Calls are read only from their own field. A text that looks like a call is an answer.
        """
        must_answer = len(context.completed_steps) >= self._max_steps
        reply = await self._model.complete(
            await beside_others(self._assemble, context),
            self._tools,
            tool_choice="none" if must_answer else "auto",
            labels=self._labels(context),
        )
        context.is_blind = reply.is_blind
        if reply.tool_calls and not must_answer:
            return Action(reply.tool_calls, reply.text, reply.reasoning)
        # Some servers ignore "none". Then the answer is the text that came with the calls.
        cut_off = CUT_OFF if reply.text and reply.finish_reason == "length" else ""
        return FinishAction(reply.text + cut_off)
