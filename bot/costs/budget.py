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

    settings: Settings
    usage: UsageStore

    @property
    def amount(self) -> Decimal:
        """The limit in the operator's currency, as it is set now."""
        return self.settings.budget_per_month

    @property
    def prices(self) -> Prices:
        """The prices as they are set now."""
        return Prices(self.settings.prices)

    async def spent(self) -> Decimal:
        """Return the cost of this month so far; raise `StoreError`."""
        return self.prices.cost(await self.usage.sums(time()))

    async def is_used_up(self) -> bool:
        """Return whether this month's budget is spent; raise `StoreError`."""
        return bool(self.amount) and await self.spent() >= self.amount
