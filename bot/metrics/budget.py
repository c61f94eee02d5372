"""The month's budget of the whole bot: whether it is used up, and telling admins in time."""

from dataclasses import dataclass
from decimal import Decimal
from time import time

from bot.commands.notices import AdminNotices
from bot.metrics.prices import Prices, shown
from bot.runtime.periodic import repeat
from config.settings import Settings
from memory.limits.usage import UsageStore

_EVERY_S = 5.0
_NOTICES = (100, 80)
"""Percent of the budget at which admins are told, the highest first."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What the bot may cost in a month of UTC; 0 is no bound."""

    amount: Decimal
    prices: Prices
    usage: UsageStore

    async def spent(self) -> Decimal:
        """Return what this month has cost so far; raise `StoreError`."""
        return self.prices.cost(await self.usage.sums(time()))

    async def is_used_up(self) -> bool:
        """Whether nothing is left of this month's budget; raise `StoreError`."""
        return bool(self.amount) and await self.spent() >= self.amount


def budget_of(settings: Settings, usage: UsageStore) -> Budget:
    """Return the operator's budget; `usage` knows what was spent."""
    return Budget(settings.budget_per_month, Prices(settings.prices), usage)


class BudgetWatch:
    """Tells admins once a month that most of the budget is spent, and once that all of it is."""

    def __init__(self, budget: Budget, notices: AdminNotices) -> None:
        self._budget = budget
        self._notices = notices

    async def run(self) -> None:
        """Look again and again until cancelled; there is nothing to do without a budget."""
        if self._budget.amount:
            await repeat(self.look, "budget", _EVERY_S)

    async def look(self) -> None:
        """Tell admins what they have not been told of this month; raise `StoreError`."""
        budget, usage = self._budget, self._budget.usage
        spent = await budget.spent()
        share = 100 * spent / budget.amount
        for at, percent in enumerate(_NOTICES):
            if share < percent:
                continue
            if await usage.claim_notice(time(), percent):
                values = {"percent": percent, "spent": shown(spent), "budget": shown(budget.amount)}
                if await self._notices.say("notices.budget", values):
                    for passed in _NOTICES[at:]:
                        await usage.mark_reported(time(), passed)
            return
