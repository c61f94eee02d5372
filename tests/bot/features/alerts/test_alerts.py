"""Admins hear of a Redis that fills up, a model that fails, and a budget that ends, each once."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from time import time

import pytest

from bot.commands.access import Operators
from bot.commands.notices import OperatorNotices
from bot.costs import Budget
from bot.features.alerts.feature import BudgetNews, CapacityNews, ModelWatch, News, Telling
from bot.model import resilience
from bot.model.model_errors import ModelError, ModelRefused, ModelUnavailable
from bot.model.resilience import ModelCondition
from bot.reply.parts import Part
from bot.telegram.chat import Destination
from bot.telegram.errors import TelegramError, Unreachable
from config.values import Price
from memory.limits.capacity import FillLevel, Level
from memory.limits.usage import BilledCall, BillingSource, Tokens, expires_at
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.store.errors import StoreFull, StoreUnavailable
from tests.bot.features.services import SENTENCES
from tests.conftest import Doomed
from tests.memory.clients import DyingClient, full_redis
from tests.memory.conftest import memory_of
from tests.quiet_chat import QuietChat
from tests.settings import Settings

WRONG_KEY = ModelRefused("refused", 401, "invalid_api_key")
TELLING = "r:42:models:telling"


class Scene(QuietChat):
    """Two processes of one bot, and the messages to its admin."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.now = 1_000.0
        self.error: TelegramError | None = None
        self.conditions = [
            ModelCondition("answers", "OPENAI_MODEL", lambda: self.now) for _ in range(2)
        ]
        self.watches = [self.watch(memory, each) for each in self.conditions]

    def watch(self, memory: Memory, condition: ModelCondition) -> ModelWatch:
        operators = Operators(memory.store, Settings(admin_user_ids=frozenset({1})))
        notices = OperatorNotices(operators, self, SENTENCES)
        return ModelWatch(memory, Telling(memory, notices), [condition])

    async def send(self, to: Destination, part: Part, timeout_s: float = 0) -> int:
        assert to.chat_id == 1
        if self.error:
            raise self.error
        return await super().send(to, part, timeout_s)

    async def later(self, seconds: float) -> int:
        """Let time pass and both processes check; return how many notices were sent so far."""
        self.now += seconds
        for watch in self.watches:
            await watch.check()
        return len(self.sent)


@pytest.fixture
def scene(memory: Memory) -> Scene:
    return Scene(memory)


async def test_a_failure_of_a_minute_is_reported_once_and_its_end_once(scene: Scene) -> None:
    one, other = scene.conditions
    for condition in (one, other):
        condition.failed(ModelUnavailable("away", 503))
    assert await scene.later(59) == 0
    assert await scene.later(1) == 1
    assert await scene.later(3_600) == 1
    assert "503" in scene.texts[0]
    other.answered()
    assert await scene.later(15) == 2
    assert await scene.later(15) == 2
    assert "answer again" in scene.texts[1]


async def test_wherever_a_process_dies_admins_hear_of_the_outage_and_of_its_end(
    scene: Scene, store: RedisClient, dying: DyingClient, doomed: Doomed
) -> None:
    """Only the one notice in doubt may come twice."""
    one, other = scene.conditions
    doubled = []
    for _ in dying.deaths():
        await store.call("FLUSHALL")
        scene.now, scene.sent[:] = scene.now + 100, []
        other.answered()
        one.failed(WRONG_KEY)
        scene.now += 60
        one.failed(WRONG_KEY)
        watch = scene.watch(doomed(), one)
        with suppress(StoreUnavailable):
            await watch.check()
        await store.call("DEL", TELLING)  # a minute later
        await scene.later(1)
        assert 1 <= len(scene.sent) <= 2
        assert all("OPENAI_API_KEY" in text for text in scene.texts)
        told = len(scene.sent)
        scene.now += 1
        one.answered()
        with suppress(StoreUnavailable):
            await watch.check()
        await store.call("DEL", TELLING)
        await scene.later(1)
        assert 1 <= len(scene.texts[told:]) <= 2
        assert all("answer again" in text for text in scene.texts[told:])
        doubled.append(len(scene.sent) - 2)
    assert doubled[-1] == 0
    assert set(doubled) == {0, 1}


async def test_a_fault_that_returns_before_admins_heard_of_its_end_is_no_news(scene: Scene) -> None:
    one, _ = scene.conditions
    one.failed(WRONG_KEY)
    assert await scene.later(60) == 1
    scene.error = Unreachable("away")
    one.answered()
    assert await scene.later(15) == 1
    one.failed(WRONG_KEY)
    scene.error = None
    assert await scene.later(100) == 1


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (WRONG_KEY, "a valid key into OPENAI_API_KEY"),
        (ModelUnavailable("no", 429, "insufficient_quota"), "no credit left (429"),
        (ModelRefused("no", 404, "model_not_found"), "another one in OPENAI_MODEL"),
    ],
)
async def test_a_fault_of_the_account_is_reported_at_once_with_what_to_do(
    scene: Scene, error: ModelError, advice: str
) -> None:
    rung: list[bool] = []
    one, other = scene.conditions
    one.tell = lambda: rung.append(True)
    one.failed(error)
    other.failed(error)
    assert rung == [True]
    assert await scene.later(1) == 0, "the second model may still answer"
    assert await scene.watches[0].check() == 2
    assert await scene.later(2) == 1
    assert await scene.later(3_600) == 1
    assert advice in scene.texts[0]


async def test_a_fault_of_the_account_is_reported_at_once_for_the_model_that_learns(
    scene: Scene,
) -> None:
    for condition in scene.conditions:
        condition.part = "learning"
        condition.failed(ModelUnavailable("no", 429, "insufficient_quota"))
    assert await scene.later(4) == 1


async def test_without_models_nothing_is_checked(scene: Scene) -> None:
    scene.watches[0]._conditions = ()
    assert await scene.watches[0].check() is None


async def test_a_model_that_answers_another_process_is_not_reported(scene: Scene) -> None:
    one, other = scene.conditions
    one.failed(ModelUnavailable("away"))
    scene.now += 1
    other.answered()
    await scene.later(30)
    assert await scene.later(60) == 0


@pytest.mark.parametrize(
    ("part", "error"),
    [("answers", ModelRefused("refused", 400)), ("learning", ModelUnavailable("away", 503))],
)
async def test_one_refused_message_and_a_model_that_only_rests_are_not_reported(
    scene: Scene, part: resilience.Part, error: ModelError
) -> None:
    for condition in scene.conditions:
        condition.part = part
    for later_s, notices in ((600, 0), (0, 1)):
        scene.conditions[0].failed(error)
        assert await scene.later(later_s) == notices


PRICES = (Price("m", Decimal(1), Decimal(1), Decimal(1)),)
LIMITED = Settings(budget_per_month=Decimal(1), prices=PRICES)


class Notices(OperatorNotices):
    """Keeps the notices to admins; if `reaches` is false, no admin can be reached."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Mapping[str, object]]] = []
        self.reaches = True

    async def say(
        self, key: str, values: Mapping[str, object], buttons: Mapping[str, str] | None = None
    ) -> bool:
        assert not buttons
        self.sent += [(key.removeprefix("notices."), values)] * self.reaches
        return self.reaches

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.sent]

    @property
    def spent(self) -> list[tuple[object, object]]:
        return [(values["percent"], values["spent"]) for _, values in self.sent]

    async def tell(self, memory: Memory, news: BudgetNews | CapacityNews) -> None:
        await Telling(memory, self).tell(news.find)


def found(memory: Memory, level: Level, clock: Callable[[], float] = time) -> CapacityNews:
    """Return the news of a process that has found this level."""
    memory.capacity.level, memory.capacity.found = level, FillLevel(84, 100)
    return CapacityNews(memory, clock)


def spent(memory: Memory, settings: Settings = LIMITED) -> BudgetNews:
    return BudgetNews(memory, Budget(settings, memory.usage, memory.quotas))


async def test_admins_are_told_that_redis_fills_up_once_a_day_after_a_fall(memory: Memory) -> None:
    notices, hour = Notices(), 0
    news = found(memory, Level.NORMAL, lambda: 1e9 + hour * 3_600)
    hours = {0: (Level.FULL_SOON, 1), 1: (Level.NORMAL, 1), 2: (Level.FULL_SOON, 1)}
    hours |= {3: (Level.NORMAL, 1), 30: (Level.FULL_SOON, 2), 31: (Level.FULL_SOON, 2)}
    for hour, (level, told) in hours.items():
        memory.capacity.level = level
        await notices.tell(memory, news)
        assert (hour, len(notices.sent)) == (hour, told)
    memory.capacity.level = Level.FULL
    await notices.tell(memory, news)
    assert notices.keys == ["filling", "filling", "full"]
    assert notices.sent[0][1]["percent"] == 84


async def test_one_of_several_processes_tells_that_redis_fills_up(
    store: RedisClient, memory: Memory
) -> None:
    notices = Notices()
    several = [found(memory_of(store), Level.FULL_SOON) for _ in range(5)]
    for notices.reaches in (False, True, True):
        await asyncio.gather(*(notices.tell(memory, each) for each in several))
    assert notices.keys == ["filling"]


async def test_a_process_that_starts_tells_nothing_again(memory: Memory) -> None:
    notices = Notices()
    for now in (1e9, 1e9 + 86_400):
        memory.capacity.level, memory.capacity.found = Level.NORMAL, FillLevel(0, 0)
        news = CapacityNews(memory, partial(float, now))
        await notices.tell(memory, news)
        memory.capacity.level, memory.capacity.found = Level.FULL_SOON, FillLevel(84, 100)
        await notices.tell(memory, news)
    assert notices.keys == ["filling"]


async def test_two_checks_of_a_process_exclude_each_other(memory: Memory) -> None:
    notices, full = Notices(), found(memory, Level.FULL)
    telling = Telling(memory, notices)
    other_check = partial(telling.tell, full.find)

    async def find() -> News:
        return News("budget", {}, other_check)  # it comes while the first one notes its news

    await telling.tell(find)
    assert notices.keys == ["budget"]


async def test_on_a_full_redis_admins_are_told_each_news_once(memory: Memory, scene: Scene) -> None:
    notices = Notices()
    await spend(memory, 1_000_000)
    scene.conditions[0].failed(ModelUnavailable("away", 503))
    async with full_redis(memory.client):
        with pytest.raises(StoreFull):
            await memory.client.call("SET", "any", "thing")
        for _ in range(2):
            await notices.tell(memory, found(memory, Level.FULL))
            await notices.tell(memory, spent(memory))
            await scene.later(60)
    assert (notices.keys, len(scene.sent)) == (["full", "budget"], 1)


async def test_a_redis_with_space_is_asked_once_an_hour(memory: Memory) -> None:
    hours = iter((0, 0.9, 1.1))
    news = found(memory, Level.NORMAL, lambda: 1e9 + 3_600 * next(hours))
    for is_asked in (True, False, True):
        before = memory.client.round_trips
        assert await news.find() is None
        assert (memory.client.round_trips > before) == is_asked


async def spend(memory: Memory, tokens: int) -> None:
    call = BilledCall(BillingSource("answer", "m"), Tokens(fresh=tokens), 7, "c:7:0")
    await memory.usage.count([call])


async def test_admins_get_one_notice_at_each_step(memory: Memory) -> None:
    notices = Notices()
    several = [spent(memory) for _ in range(2)]
    for tokens in (790_000, 10_000, 100_000, 100_000, 500_000):
        await spend(memory, tokens)
        await asyncio.gather(*(notices.tell(memory, each) for each in several))
    assert notices.spent == [(80, Decimal("0.8")), (100, Decimal(1))]
    [told, _] = await memory.client.call("KEYS", "*reported*")
    assert await memory.client.call("EXPIRETIME", told) == expires_at(told.decode().split(":")[-3])


async def test_admins_get_one_notice_if_both_steps_are_passed_at_once(memory: Memory) -> None:
    notices = Notices()
    await spend(memory, 3_000_000)
    for _ in range(2):
        await notices.tell(memory, spent(memory))
    assert notices.spent == [(100, Decimal(3))]


async def test_without_a_budget_nothing_is_asked_of_redis(memory: Memory) -> None:
    before = memory.client.round_trips
    assert await spent(memory, Settings()).find() is None
    assert memory.client.round_trips == before
