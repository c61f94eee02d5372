"""What happens after the model's server refuses a prompt: one message must never block a chat.

A filter or a rule of the server may refuse the person's message, but also something else in the
prompt. So the message is tried alone, and it is called refused only if the server takes another
message in its place.
"""

from dataclasses import replace

import structlog

from bot.agent.agent import FunctionsBasedAgent
from bot.agent.run import run_agent
from bot.agent.toolbox import Toolbox
from bot.model.model_errors import ModelError, ModelRefused
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import FinishAction

log = structlog.get_logger(__name__)

_HARMLESS = "Hello"


class MessageRefused(Exception):
    """Raised when the server refuses the person's message but takes others; the cause says why."""


async def run_despite_refusals(
    agent: FunctionsBasedAgent, toolbox: Toolbox, context: AgentContext
) -> FinishAction:
    """Return the answer as `run_agent` does; after a refusal try again with the message alone.

    The second try drops window, search results and memory context from `context`. Raise
    `MessageRefused` or `ModelError`.
    """
    before = tuple(context.writes)  # those of the behaviors; the tools of a run add theirs
    try:
        return await run_agent(agent, toolbox, context)
    except ModelRefused as error:
        if not error.may_concern_messages:
            raise
        refusal = error
    if context.window or context.recalled or context.memory_context or context.completed_steps:
        log.warning("message tried alone", status=refusal.status, code=refusal.code)
        context.window, context.recalled, context.memory_context = (), (), ""
        del context.writes[len(before) :]
        try:
            return await run_agent(agent, toolbox, context)
        except ModelRefused as error:
            refusal = error
    if refusal.may_concern_messages and await _takes_another_message(agent, context):
        raise MessageRefused from refusal
    raise refusal


async def _takes_another_message(agent: FunctionsBasedAgent, context: AgentContext) -> bool:
    """Return whether the server answers the same prompt with a harmless message.

    If not, the operator has to act: a parameter, the system prompt or a tool is refused. Nothing of
    this try is run or stored.
    """
    message = replace(context.user_message, text=_HARMLESS)
    harmless = replace(context, user_message=message, completed_steps=[], writes=[])
    try:
        await agent.next_action(harmless)
    except ModelError:
        return False
    return True
