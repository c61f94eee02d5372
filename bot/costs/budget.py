"""The monthly budget of the whole bot, and whether a person may use any of it now."""

from dataclasses import dataclass
from decimal import Decimal
from time import time

from bot.costs.prices import Prices
from config.settings import Settings
from memory.limits.quotas import Quota, Quotas
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

    @property
    def quota(self) -> Quota:
        """The quota of a person, as it is set now."""
        return Quota(self.settings.user_turns_per_minute, self.settings.user_tokens_per_day)

    async def allows(self, person: int, quotas: Quotas) -> bool:
        """Return whether models may be asked for a person now; raise `StoreError`.

        Nothing is counted, and admins are exempt.
        """
        if person in self.settings.admin_user_ids:
            return True
        return not (await self.is_used_up() or await quotas.is_used_up(person, self.quota))
