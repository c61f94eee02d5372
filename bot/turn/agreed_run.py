"""Runs a tool from outside after its person agreed with a button, at most once."""

from collections.abc import Awaitable, Callable

import structlog

from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, CompletedStep, ToolCall, ToolResult
from memory.erasure.tool_runs import ToolRuns

log = structlog.get_logger(__name__)

RunTools = Callable[[Action, AgentContext], Awaitable[CompletedStep]]

_UNKNOWN = (
    "Error: the tool was started and the bot stopped before its result came, so it is not known "
    "whether it did its work. Tell the person, and do not call it again by yourself."
)


class AgreedRun:
    """Brings the result of an agreed call into the context, for the model to answer."""

    def __init__(self, runs: ToolRuns, run_tools: RunTools) -> None:
        self.runs = runs
        self._run_tools = run_tools

    async def bring(self, request: Request, context: AgentContext) -> bool:
        """Run the tool; return False if there is nothing to answer.

        Raise `LeaseLost` or `StoreError`.
        """
        nonce, update_id = request.last.agreed, request.last.update_id
        begun = await self.runs.begin(context.conversation, nonce, update_id)
        if begun is None:
            log.info("agreed tool not run")
            return False
        question, which = begun
        call = ToolCall(f"call_{nonce}", question.name, question.arguments)
        action = Action((call,))
        if which == "first":
            context.is_agreed = True
            try:
                step = await self._run_tools(action, context)
            finally:
                context.is_agreed = False
        else:
            log.warning("result of an agreed tool unknown", server=question.server)
            step = CompletedStep(action, (ToolResult(call.id, _UNKNOWN, failed=True),))
        context.completed_steps.append(step)
        return True
