"""What models cost, and the monthly budget of the whole bot. Amounts are exact decimals."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from time import time

from config.settings import Settings
from config.values import Price
from memory.limits.quotas import Quota, Quotas
from memory.limits.usage import DRAWN, HEARD, SPOKEN, BillingSource, BySource, Tokens, UsageStore

_PER_TOKENS = 1_000_000
_UNITS = {
    "min": (HEARD, 60),
    "kchar": (SPOKEN, 1_000),
    "Mchar": (SPOKEN, 1_000_000),
    "image": (DRAWN, 1),
}
"""What is counted for a unit, and how much of it the price is for."""
_SHOWN = Decimal("0.0001")


class Prices:
    """The price of each model; what has no price costs nothing."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._prices = {price.model: price for price in prices}

    def __bool__(self) -> bool:
        """Return whether there is any price."""
        return bool(self._prices)

    def cost(self, sums: BySource) -> Decimal:
        """Return the cost of all sources together."""
        return sum((self._of(source, tokens) for source, tokens in sums.items()), Decimal(0))

    def missing(self, sources: Iterable[BillingSource]) -> tuple[str, ...]:
        """Return the sorted names of models with no price for anything that was counted of them."""
        sources = list(sources)
        priced = {each.model for each in sources if self._is_priced(each)}
        return tuple(sorted({each.model for each in sources} - priced))

    def _is_priced(self, source: BillingSource) -> bool:
        price = self._prices.get(source.model)
        if price is None:
            return False
        counted, _ = _UNITS.get(price.unit, ("", 0))
        return source.kind == counted if counted else source.kind not in (HEARD, SPOKEN, DRAWN)

    def _of(self, source: BillingSource, tokens: Tokens) -> Decimal:
        price = self._prices.get(source.model)
        if price is None or not self._is_priced(source):
            return Decimal(0)
        if price.unit:
            return tokens.reasoning * price.input / _UNITS[price.unit][1]
        amount = tokens.fresh * price.input
        amount += tokens.cached * price.cached + tokens.output * price.output
        return amount / _PER_TOKENS


def shown(amount: Decimal) -> str:
    """Return an amount as text, rounded to four decimals."""
    return f"{amount.quantize(_SHOWN, ROUND_HALF_UP)}"


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
