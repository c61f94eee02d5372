"""Reminders in a schedule: each message asks for one, and one token stands for each delivery."""

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
    """Set a reminder of the message itself, as the tool does if the model calls it."""
    message = context.user_message
    due = context.now + _DELAYS_S[message.message_ids[0] % len(_DELAYS_S)]
    at = datetime.fromtimestamp(due, UTC).isoformat()
    context.work.added.append(WorkItem(message.sender_id, message.text, at=at, due=due))


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
