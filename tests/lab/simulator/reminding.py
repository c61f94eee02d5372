"""Reminders and tasks in a schedule: each message asks for one; a token stands for a delivery."""

from contextvars import ContextVar
from datetime import UTC, datetime

from bot.runtime.work import WorkLoop
from memory.behaviors.context import AgentContext
from memory.work.item import WorkItem
from memory.work.items import TakenWork
from tests.lab.simulator.audit import Auditor

SIGN = "⏰ w"
"""How the message of a reminder begins: with the marker of the message that asked for it."""

_DELAYS_S = 1.5, 4.0, 9.0

_TOKEN: ContextVar[str] = ContextVar("reminder", default="")


def token_of_reminder() -> str:
    """Return the token under which the caller delivers a reminder, "" for none."""
    return _TOKEN.get()


def remind(context: AgentContext) -> None:
    """Set a reminder or a task of the message itself, as the tool does if the model calls it.

    What a task says depends on that message, but does not contain it.
    """
    message, [number, *_] = context.user_message, context.user_message.message_ids
    if number < 0:
        return  # a task makes no task
    due = context.now + _DELAYS_S[number % len(_DELAYS_S)]
    at = datetime.fromtimestamp(due, UTC).isoformat()
    is_task = bool(number % 2)
    text = message.text.replace("w", "s") if is_task else message.text
    item = WorkItem(message.sender_id, text, at=at, due=due, is_task=is_task, message_id=number)
    context.work.added.append(item)


class NamingWorkLoop(WorkLoop):
    """Sends reminders so that each send knows its token, and the auditor which ones ended."""

    auditor: Auditor

    async def _send(self, taken: TakenWork) -> None:
        token = _TOKEN.set(taken.token)
        try:
            await super()._send(taken)
            self.auditor.records.reminders.ended[taken.token] = self.auditor.step
        finally:
            _TOKEN.reset(token)
