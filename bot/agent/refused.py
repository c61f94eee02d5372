"""Tries again after the model's server refused a prompt, so that one message never blocks a chat.

A filter of the server may refuse the person's message, or another part of the prompt. So the
message is sent alone. It counts as refused only if the server accepts a harmless message instead.
"""

from dataclasses import replace

import structlog

from bot.agent.agent import Agent
from bot.agent.run import run_agent
from bot.agent.toolbox import Toolbox
from bot.model.model_errors import ModelError, ModelRefused
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import FinishAction
from memory.reminders.reminder import ReminderChanges

log = structlog.get_logger(__name__)

_HARMLESS = "Hello"


class MessageRefused(Exception):
    """Raised when the server refuses this message but accepts others; the cause says why."""


async def run_despite_refusals(
    agent: Agent, toolbox: Toolbox, context: AgentContext
) -> FinishAction:
    """Return the answer as `run_agent` does; after a refusal try again with the message alone.

    The second try removes window, replies, search results and memory context from `context`. Raise
    `MessageRefused` or `ModelError`.
    """
    before = tuple(context.writes)  # the behaviors' writes; the tools of a run append theirs
    try:
        return await run_agent(agent, toolbox, context)
    except ModelRefused as error:
        if not error.may_concern_messages:
            raise
        refusal = error
    beside = (context.window, context.recalled, context.memory_context, context.replies)
    if any(beside) or context.completed_steps:
        log.warning("message tried alone", status=refusal.status, code=refusal.code)
        context.window, context.recalled, context.memory_context = (), (), ""
        context.replies = ()
        del context.writes[len(before) :]
        context.reminders = ReminderChanges()
        try:
            return await run_agent(agent, toolbox, context)
        except ModelRefused as error:
            refusal = error
    if refusal.may_concern_messages and await _takes_another_message(agent, context):
        raise MessageRefused from refusal
    raise refusal


async def _takes_another_message(agent: Agent, context: AgentContext) -> bool:
    """Return whether the server answers the same prompt with a harmless message.

    If it does not, the server refuses a parameter, the system prompt or a tool, and the operator
    has to act. No tool of this try runs, and nothing of it is stored.
    """
    message = replace(context.user_message, text=_HARMLESS)
    harmless = replace(
        context, user_message=message, user_messages=(), completed_steps=[], writes=[]
    )
    try:
        await agent.next_action(harmless)
    except ModelError:
        return False
    return True
