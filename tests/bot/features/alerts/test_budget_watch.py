"""Admins get one notice at 80 % of the budget and one at 100 %."""

from collections.abc import Mapping
from decimal import Decimal

from bot.commands.notices import AdminNotices
from bot.costs import Budget
from bot.features.alerts.feature import BudgetWatch
from config.values import Price
from memory.limits.usage import BilledCall, BillingSource, Tokens
from memory.memory import Memory
from tests.settings import Settings

PRICES = (Price("m", Decimal(1), Decimal(1), Decimal(1)),)
LIMITED = Settings(budget_per_month=Decimal(1), prices=PRICES)


class Notices(AdminNotices):
    """Keeps the notices to admins; if `reaches` is false, no admin can be reached."""

    def __init__(self) -> None:
        self.sent: list[tuple[object, object]] = []
        self.reaches = True

    async def say(
        self, key: str, values: Mapping[str, object], buttons: Mapping[str, str] | None = None
    ) -> bool:
        assert not buttons
        assert key == "notices.budget"
        self.sent += [(values["percent"], values["spent"])] * self.reaches
        return self.reaches


async def spend(memory: Memory, tokens: int) -> None:
    call = BilledCall.now(BillingSource("answer", "m"), Tokens(fresh=tokens), 7, "c:7:0")
    await memory.usage.count([call])


async def test_admins_get_one_notice_at_each_step(memory: Memory) -> None:
    notices = Notices()
    watches = [BudgetWatch(Budget(LIMITED, memory.usage), notices) for _ in range(2)]
    for tokens in (790_000, 10_000, 100_000, 100_000, 500_000):
        await spend(memory, tokens)
        for watch in watches:
            await watch.check()
    assert notices.sent == [(80, "0.8000"), (100, "1.0000")]


async def test_admins_get_one_notice_if_both_steps_are_passed_at_once(memory: Memory) -> None:
    notices = Notices()
    await spend(memory, 3_000_000)
    for _ in range(2):
        await BudgetWatch(Budget(LIMITED, memory.usage), notices).check()
    assert notices.sent == [(100, "3.0000")]


async def test_a_notice_that_reached_no_admin_is_sent_again(memory: Memory) -> None:
    notices = Notices()
    notices.reaches = False
    await spend(memory, 900_000)
    watch = BudgetWatch(Budget(LIMITED, memory.usage), notices)
    await watch.check()
    notices.reaches = True
    [claim] = await memory.client.call("KEYS", "*reported*")
    await memory.client.call("DEL", claim)  # as after a minute
    await watch.check()
    assert notices.sent == [(80, "0.9000")]


async def test_without_a_budget_nothing_is_asked_of_redis(memory: Memory) -> None:
    before = memory.client.round_trips
    await BudgetWatch(Budget(Settings(), memory.usage), Notices()).check()
    assert memory.client.round_trips == before
