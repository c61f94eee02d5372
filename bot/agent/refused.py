"""What happens when the model's server refuses a prompt: one message must never block a chat.

A filter, or a rule of one server, may decline what the person just said, but also something that
stands around it. So the words are tried alone, and blamed only if the server takes other words.
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


class WordsRefused(Exception):
    """Raised when the server refuses the person's words and takes others; the cause says why."""


async def run_despite_refusals(
    agent: FunctionsBasedAgent, toolbox: Toolbox, context: AgentContext
) -> FinishAction:
    """Return the answer like `run_agent`; a refused prompt is tried again with the words alone.

    Then window, recollections and what behaviors tell are taken out of the context. Raise
    `WordsRefused` or `ModelError`.
    """
    before = tuple(context.writes)  # what behaviors want written, not the tools of a run
    try:
        return await run_agent(agent, toolbox, context)
    except ModelRefused as error:
        if not error.may_concern_messages:
            raise
        refusal = error
    if context.window or context.recalled or context.memory_context or context.completed_steps:
        log.warning("words tried alone", status=refusal.status, code=refusal.code)
        context.window, context.recalled, context.memory_context = (), (), ""
        del context.writes[len(before) :]
        try:
            return await run_agent(agent, toolbox, context)
        except ModelRefused as error:
            refusal = error
    if refusal.may_concern_messages and await _takes_other_words(agent, context):
        raise WordsRefused from refusal
    raise refusal


async def _takes_other_words(agent: FunctionsBasedAgent, context: AgentContext) -> bool:
    """Say whether the server answers the same prompt with harmless words; nothing is run or kept.

    If not, the fault is the operator's: a parameter, the system prompt or a tool.
    """
    words = replace(context.user_message, text=_HARMLESS)
    harmless = replace(context, user_message=words, completed_steps=[], writes=[])
    try:
        await agent.next_action(harmless)
    except ModelError:
        return False
    return True
