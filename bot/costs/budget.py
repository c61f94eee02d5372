"""The month's budget of the whole bot, and whether it is used up."""

from dataclasses import dataclass
from decimal import Decimal
from time import time

from bot.costs.prices import Prices
from config.settings import Settings
from memory.limits.usage import UsageStore


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
