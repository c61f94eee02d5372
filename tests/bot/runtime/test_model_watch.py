"""Admins are told once that a model fails for everybody, and once that it answers again."""

import pytest

from bot.commands.access import Operators
from bot.commands.notices import AdminNotices
from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.model.guarded import ModelCondition
from bot.model.model_errors import ModelRefused, ModelUnavailable
from bot.reply.parts import Part
from bot.runtime.periodic import ModelWatch
from bot.telegram.chat import Destination
from bot.telegram.errors import TelegramError, Unreachable
from config.settings import Settings
from memory.memory import Memory, MemoryOptions
from memory.queue.turns import TurnTimes
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.quiet_chat import QuietChat

WRONG_KEY = ModelRefused("refused", 401, "invalid_api_key")
ONE_MESSAGE = ModelRefused("refused", 400)


class Scene(QuietChat):
    """Two processes of one bot, and the messages to its admin."""

    def __init__(self, store: RedisClient, tokens: TokenCounter) -> None:
        super().__init__()
        self.now = 1_000.0
        self.error: TelegramError | None = None
        options = MemoryOptions(86_400, 50, 10**6, TurnTimes())
        memory = Memory(store, 42, tokens, None, options)
        notices = AdminNotices(
            Operators(memory.store, Settings(admin_user_ids=frozenset({1}))),
            self,
            Sentences(Catalogue()),
        )
        self.conditions = [
            ModelCondition("answers", "OPENAI_MODEL", lambda: self.now) for _ in range(2)
        ]
        self.watches = [
            ModelWatch(memory, notices, [each], lambda: self.now) for each in self.conditions
        ]

    async def send(self, to: Destination, part: Part, timeout_s: float = 0) -> int:
        assert to.chat_id == 1
        if self.error:
            raise self.error
        return await super().send(to, part, timeout_s)

    @property
    def texts(self) -> list[str]:
        return [part.text for _, part in self.sent]

    async def later(self, seconds: float) -> int:
        """Let time pass and both processes check; return how many notices were sent so far."""
        self.now += seconds
        for watch in self.watches:
            await watch.check()
        return len(self.sent)


@pytest.fixture
def scene(store: RedisClient, tokens: TokenCounter) -> Scene:
    return Scene(store, tokens)


async def test_a_failure_of_a_minute_is_reported_once_and_its_end_once(
    scene: Scene,
) -> None:
    one, other = scene.conditions
    for condition in (one, other):
        condition.failed(WRONG_KEY)
    assert await scene.later(59) == 0
    assert await scene.later(1) == 1
    assert await scene.later(3_600) == 1
    assert "401 invalid_api_key" in scene.texts[0]
    assert "OPENAI_API_KEY" in scene.texts[0]
    other.answered()
    assert await scene.later(15) == 2
    assert await scene.later(15) == 2
    assert "answer again" in scene.texts[1]


async def test_a_model_that_answers_another_process_is_not_reported(
    scene: Scene,
) -> None:
    one, other = scene.conditions
    one.failed(ModelUnavailable("away"))
    scene.now += 1
    other.answered()
    await scene.later(30)
    assert await scene.later(60) == 0


async def test_one_refused_message_is_not_reported(scene: Scene) -> None:
    scene.conditions[0].failed(ONE_MESSAGE)
    assert await scene.later(600) == 0
    scene.conditions[0].failed(ONE_MESSAGE)
    assert await scene.later(0) == 1


async def test_an_admin_who_cannot_be_reached_is_told_later(scene: Scene) -> None:
    scene.conditions[0].failed(WRONG_KEY)
    scene.error = Unreachable("away")
    assert await scene.later(60) == 0
    scene.error = None
    assert await scene.later(15) == 1
