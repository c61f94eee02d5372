"""Admins are told once that most of the budget is spent, and once that all of it is."""

from collections.abc import Mapping
from decimal import Decimal

from bot.commands.notices import AdminNotices
from bot.costs.budget import Budget
from bot.costs.prices import Prices
from bot.runtime.periodic import BudgetWatch
from config.values import Price
from memory.limits.billed import BilledCall, Source, Tokens
from memory.memory import Memory
from tests.memory.conftest import memory

__all__ = ["memory"]

PRICES = Prices([Price("m", Decimal(1), Decimal(1), Decimal(1))])


class Notices(AdminNotices):
    """Keeps what admins are told; `reaches` says whether anybody can be told now."""

    def __init__(self) -> None:
        self.told: list[tuple[object, object]] = []
        self.reaches = True

    async def say(self, key: str, values: Mapping[str, object]) -> bool:
        assert key == "notices.budget"
        self.told += [(values["percent"], values["spent"])] * self.reaches
        return self.reaches


async def spend(memory: Memory, tokens: int) -> None:
    call = BilledCall.now(Source("answer", "m"), Tokens(fresh=tokens), 7, "c:7:0")
    await memory.usage.count([call])


async def test_each_step_is_told_once(memory: Memory) -> None:
    notices = Notices()
    watches = [BudgetWatch(Budget(Decimal(1), PRICES, memory.usage), notices) for _ in range(2)]
    for tokens in (790_000, 10_000, 100_000, 100_000, 500_000):
        await spend(memory, tokens)
        for watch in watches:
            await watch.check()
    assert notices.told == [(80, "0.8000"), (100, "1.0000")]


async def test_a_jump_over_both_steps_is_told_once(memory: Memory) -> None:
    notices = Notices()
    await spend(memory, 3_000_000)
    for _ in range(2):
        await BudgetWatch(Budget(Decimal(1), PRICES, memory.usage), notices).check()
    assert notices.told == [(100, "3.0000")]


async def test_where_nobody_could_be_reached_it_is_tried_again(memory: Memory) -> None:
    notices = Notices()
    notices.reaches = False
    await spend(memory, 900_000)
    watch = BudgetWatch(Budget(Decimal(1), PRICES, memory.usage), notices)
    await watch.check()
    notices.reaches = True
    [claim] = await memory.client.call("KEYS", "*reported*")
    await memory.client.call("DEL", claim)  # as after a minute
    await watch.check()
    assert notices.told == [(80, "0.9000")]


async def test_without_a_budget_there_is_nothing_to_watch(memory: Memory) -> None:
    await BudgetWatch(Budget(Decimal(0), PRICES, memory.usage), Notices()).run()
