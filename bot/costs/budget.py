"""The monthly budget of the whole bot."""

from dataclasses import dataclass
from decimal import Decimal
from time import time

from bot.costs.prices import Prices
from config.settings import Settings
from memory.limits.usage import UsageStore


@dataclass(frozen=True, slots=True)
class Budget:
    """What the bot may cost in a calendar month (UTC); an `amount` of 0 means no limit."""

    amount: Decimal
    prices: Prices
    usage: UsageStore

    async def spent(self) -> Decimal:
        """Return the cost of this month so far; raise `StoreError`."""
        return self.prices.cost(await self.usage.sums(time()))

    async def is_used_up(self) -> bool:
        """Return whether this month's budget is spent; raise `StoreError`."""
        return bool(self.amount) and await self.spent() >= self.amount


def budget_of(settings: Settings, usage: UsageStore) -> Budget:
    """Return the operator's budget; `usage` has the counted tokens."""
    return Budget(settings.budget_per_month, Prices(settings.prices), usage)
