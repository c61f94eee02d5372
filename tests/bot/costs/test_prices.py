"""Costs are exact decimals."""

from decimal import Decimal

from bot.costs import Prices, shown
from config.values import Price
from memory.limits.usage import DRAWN, HEARD, SPOKEN, BillingSource, Tokens

PRICES = Prices(
    [
        Price("main", Decimal(1), Decimal("0.5"), Decimal(2)),
        Price("memory", Decimal("0.2"), Decimal("0.1"), Decimal("0.8")),
        Price("ear", Decimal("0.006"), unit="min"),
        Price("mouth", Decimal(15), unit="Mchar"),
        Price("throat", Decimal("0.015"), unit="kchar"),
        Price("brush", Decimal("0.04"), unit="image"),
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


def test_sounds_cost_by_the_minute_and_speech_by_the_character() -> None:
    assert PRICES.cost({BillingSource(HEARD, "ear"): Tokens(reasoning=90)}) == Decimal("0.009")
    for model in ("mouth", "throat"):
        sums = {BillingSource(SPOKEN, model): Tokens(reasoning=2_000)}
        assert PRICES.cost(sums) == Decimal("0.03")
        assert PRICES.missing(sums) == ()


def test_sounds_and_images_cost_by_tokens_or_by_their_unit_but_not_both() -> None:
    for kind, model, cost in (
        (HEARD, "ear", "0.006"),
        (HEARD, "main", "0.00002"),
        (DRAWN, "brush", "2.4"),
        (DRAWN, "main", "0.00002"),
    ):
        sums = {
            BillingSource("of its tokens", model): Tokens(fresh=14, output=3),
            BillingSource(kind, model): Tokens(reasoning=60),
        }
        assert PRICES.cost(sums) == Decimal(cost)
        assert PRICES.missing(sums) == ()
    only_seconds = {BillingSource(HEARD, "main"): Tokens(reasoning=60)}
    assert PRICES.cost(only_seconds) == 0
    assert PRICES.missing(only_seconds) == ("main",)
