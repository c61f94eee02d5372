"""Tries again after the model's server refused a prompt, so that one message never blocks a chat.

A filter of the server may refuse the person's message, its pictures, or another part of the
prompt. The pictures count as refused if the server accepts the prompt without them. Otherwise the
message is sent alone. It counts as refused only if the server accepts a harmless message instead.
"""

from dataclasses import replace

import structlog

from bot.agent.agent import Agent
from bot.agent.run import run_agent
from bot.agent.toolbox import Toolbox
from bot.model.model_errors import ContextTooLong, ModelError, ModelRefused
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import FinishAction
from memory.reminders.reminder import ReminderChanges

log = structlog.get_logger(__name__)

_HARMLESS = "Hello"


class MessageRefused(Exception):
    """Raised when the server refuses this message but accepts others; the cause says why."""


class PicturesDeclined(Exception):
    """Raised when the server refuses only the pictures of a message; the cause says why."""


async def run_despite_refusals(
    agent: Agent, toolbox: Toolbox, context: AgentContext
) -> FinishAction:
    """Return the answer as `run_agent` does; after a refusal try again with the message alone.

    The second try removes window, replies, search results and memory context from `context`. Raise
    `PicturesDeclined`, `MessageRefused` or `ModelError`.
    """
    before = tuple(context.writes)  # the behaviors' writes; the tools of a run append theirs
    try:
        return await run_agent(agent, toolbox, context)
    except ModelRefused as error:
        if not error.may_concern_messages:
            raise
        refusal = error
    is_too_long = isinstance(refusal, ContextTooLong)
    if (
        context.pictures
        and not is_too_long
        and await _accepts(agent, replace(context, pictures=()))
    ):
        raise PicturesDeclined from refusal
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
    if not refusal.may_concern_messages:
        raise refusal
    # If the server does not answer a harmless message either, it refuses a parameter, the system
    # prompt or a tool, and the operator has to act.
    message = replace(context.user_message, text=_HARMLESS)
    harmless = replace(context, user_message=message, user_messages=(), completed_steps=[])
    if await _accepts(agent, replace(harmless, pictures=())):
        raise MessageRefused from refusal
    raise refusal


async def _accepts(agent: Agent, context: AgentContext) -> bool:
    """Return whether the server answers a prompt; no tool runs, and nothing is stored."""
    try:
        await agent.next_action(replace(context, writes=[]))
    except ModelError:
        return False
    return True
