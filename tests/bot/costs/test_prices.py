"""Costs are exact decimals."""

from decimal import Decimal

from bot.costs.prices import Prices, shown
from config.values import Price
from memory.limits.billed import BillingSource, Tokens

PRICES = Prices(
    [
        Price("main", Decimal(1), Decimal("0.5"), Decimal(2)),
        Price("memory", Decimal("0.2"), Decimal("0.1"), Decimal("0.8")),
    ]
)
MAIN, MEMORY, FREE = (
    BillingSource("answer", "main"),
    BillingSource("internal", "memory"),
    BillingSource("answer", "own"),
)


def test_each_kind_of_token_has_its_price() -> None:
    sums = {MAIN: Tokens(1_000_000, 100_000, 10_000, 9_000), MEMORY: Tokens(3, 0, 1)}
    assert PRICES.cost(sums) == Decimal("1.07") + Decimal("0.0000014")


def test_a_million_small_calls_cost_as_much_as_one_large_call() -> None:
    one = PRICES.cost({MEMORY: Tokens(fresh=1)})
    assert one * 1_000_000 == PRICES.cost({MEMORY: Tokens(fresh=1_000_000)})


def test_a_model_without_a_price_costs_nothing_and_is_listed() -> None:
    sums = {MAIN: Tokens(fresh=1), FREE: Tokens(fresh=1)}
    assert PRICES.cost({FREE: Tokens(fresh=1)}) == 0
    assert PRICES.missing(sums) == ("own",)


def test_amounts_are_shown_with_four_decimals() -> None:
    assert [shown(Decimal(each)) for each in ("0", "0.00005", "12.34567")] == [
        *("0.0000", "0.0001", "12.3457")
    ]
