"""What tokens cost. Amounts are exact decimals in the operator's currency."""

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal

from config.values import Price
from memory.limits.billed import BillingSource, BySource, Tokens

_PER_TOKENS = 1_000_000
_SHOWN = Decimal("0.0001")


class Prices:
    """Prices of a million tokens for each model; a model without a price costs nothing."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._prices = {price.model: price for price in prices}

    def __bool__(self) -> bool:
        """Return whether there is any price."""
        return bool(self._prices)

    def cost(self, sums: BySource) -> Decimal:
        """Return the cost of all sources together."""
        return sum((self._of(source, tokens) for source, tokens in sums.items()), Decimal(0))

    def missing(self, sources: Iterable[BillingSource]) -> tuple[str, ...]:
        """Return the sorted names of models that have no price."""
        return tuple(sorted({each.model for each in sources if each.model not in self._prices}))

    def _of(self, source: BillingSource, tokens: Tokens) -> Decimal:
        price = self._prices.get(source.model)
        if price is None:
            return Decimal(0)
        amount = tokens.fresh * price.input
        amount += tokens.cached * price.cached + tokens.output * price.output
        return amount / _PER_TOKENS


def shown(amount: Decimal) -> str:
    """Return an amount as text, rounded to four decimals."""
    return f"{amount.quantize(_SHOWN, ROUND_HALF_UP)}"
