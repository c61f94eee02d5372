"""Quotas: a person who has used up theirs gets one notice, then no answer for a while.

Only what asks a model is counted, so commands always work. Admins are exempt, also from the bot's
budget of the month. A message that is not answered is not remembered either, and the notice says
so.
"""

from dataclasses import dataclass

import structlog

from bot.commands.sentences import Sentences
from bot.costs.budget import Budget
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from config.settings import Settings
from memory.limits.quotas import Quotas, Verdict
from memory.scopes.history import ChatHistory

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class QuotaStep:
    """Answers with a notice once a person's quota or the budget is used up; counts in `quotas`."""

    quotas: Quotas
    settings: Settings
    budget: Budget
    sentences: Sentences

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Return None to have the message answered, else a notice; without parts if it was told.

        A question that was taken out of the history to be answered again was admitted before that.
        """
        if request.last.replaced and request.last.replaced.question:
            return None
        person = request.payer
        # A turn keeps its name when it begins again: that of its first update. An edit is an update
        # of its own, so it counts.
        turn = f"{history.conversation.tag}/{request.updates[0].update_id}"
        verdict = await self.admit(person, turn)
        if verdict is Verdict.ADMITTED:
            return None
        log.warning("quota used up", user=person, verdict=verdict.value)
        is_told = verdict is Verdict.SILENCED
        key = f"quota.{'edited_' if request.last.kind == 'edit' else ''}{verdict.value}"
        said = () if is_told else self.sentences.say(request.language, key)
        return Outbox(request.to, said, is_unread=True)

    async def admit(self, person: int, turn: str) -> Verdict:
        """Count a turn and say whether it may be answered; raise `StoreError`.

        A person is told once a day that the bot's budget is used up.
        """
        settings = self.settings
        if person in settings.admin_user_ids:
            return Verdict.ADMITTED
        if await self.budget.is_used_up():
            is_first = await self.quotas.is_first_today(person, turn, Verdict.BUDGET)
            return Verdict.BUDGET if is_first else Verdict.SILENCED
        each = self.budget.quota
        if not (each.turns_per_minute or each.tokens_per_day):
            return Verdict.ADMITTED
        return await self.quotas.admit(person, turn, each)
