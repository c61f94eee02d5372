"""The second model answers while the first one cannot, and only then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, nullcontext, suppress

import pytest
from pydantic import SecretStr

from bot.model.call import ChatModel, ModelReply, ModelRequest, time_limit
from bot.model.chat_model import OpenAIChatModel, ResilientChatModel
from bot.model.model_errors import ContentRefused, ContextTooLong, ModelError, ModelRefused
from bot.model.models import open_models
from bot.model.openai_client import ModelClient, open_client
from bot.model.resilience import Attempt, CircuitBreaker, ModelCondition, Resilient
from bot.model.structured import InternalCalls, StructuredModel
from memory.text.internal_model import InternalModelUnavailable, ModelTrouble
from tests.bot.model.conftest import HELLO
from tests.lab.simulated_time import SimulatedClock
from tests.lab.simulator.loop import VirtualLoop
from tests.servers.model_api import (
    ApiError,
    Break,
    Dialect,
    ModelApiServer,
    Reply,
    Scripted,
    StreamBreak,
    content_filtered,
    rate_limited,
    server_error,
)
from tests.servers.model_api.errors import bad_request
from tests.servers.model_api.faults import Fault
from tests.settings import Settings

LIMIT_S = 4.0
SILENCE = 100.0
MISSING = ApiError(404, "The model `m` does not exist", code="model_not_found")


class Scene:
    """Two servers, a model on each, and the clock of the first model's rest."""

    def __init__(self) -> None:
        self.now = 0.0
        self.breaker = CircuitBreaker(lambda: self.now)
        self.first = ModelApiServer(Scripted("first"))
        self.second = ModelApiServer(Scripted("second"))

    def connect(self, client: ModelClient, other: ModelClient) -> None:
        self.pair: Resilient[ChatModel] = Resilient(
            OpenAIChatModel(client, "first", LIMIT_S / 2),
            OpenAIChatModel(other, "second", LIMIT_S),
            self.breaker,
            LIMIT_S,
        )
        internal = Resilient(
            StructuredModel(client, "first", LIMIT_S / 2),
            StructuredModel(other, "second", LIMIT_S),
            self.breaker,
            LIMIT_S,
        )
        self.internal = InternalCalls(internal, ModelCondition("learning", "OPENAI_MEMORY_MODEL"))
        self.chat = ResilientChatModel(self.pair, ModelCondition("answers", "OPENAI_MODEL"))

    async def ask(self) -> str:
        return (await self.chat.complete(ModelRequest(HELLO))).text

    @property
    def asked(self) -> tuple[int, int]:
        return len(self.first.log.chats), len(self.second.log.chats)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    async with AsyncExitStack() as stack:
        for server in (scene.first, scene.second):
            await stack.enter_async_context(server)
        opening = open_client(scene.first.base_url, None, LIMIT_S / 2, retries=0)
        client = await stack.enter_async_context(opening)
        opening = open_client(scene.second.base_url, None, LIMIT_S / 2)
        other = await stack.enter_async_context(opening)
        scene.connect(client, other)
        stack.push_async_callback(scene.pair.close)
        yield scene


@pytest.mark.parametrize("second", [None, "second"])
async def test_answers_fail_only_if_no_model_answers(scene: Scene, second: str | None) -> None:
    scene.first.faults.add(MISSING)
    scene.second.dialect = Dialect(api_key="key")
    update = {
        "openai_base_url": scene.first.base_url,
        "fallback_model": second,
        "fallback_base_url": scene.second.base_url,
        "fallback_api_key": SecretStr("key"),
    }
    async with open_models(Settings().model_copy(update=update)) as models:
        with nullcontext() if second else pytest.raises(ModelError):
            await models.chats[0].complete(ModelRequest(HELLO))
        found = (models.conditions[0].failures, models.conditions[0].answered_at > 0)
    assert found == ((0, True) if second else (1, False))


@pytest.mark.parametrize(
    "fault",
    [
        server_error(),
        rate_limited(20),
        ApiError(429, "You exceeded your current quota", code="insufficient_quota"),
        MISSING,
        ApiError(401, "Incorrect API key"),
        ApiError(402, "Insufficient balance"),
        ApiError(403, "Your account is not active"),
        Break.DROP,
        Break.HTML,
        StreamBreak.CUT,
        StreamBreak.DROP,
        StreamBreak.ERROR,
    ],
    ids=str,
)
async def test_if_the_first_model_fails_the_second_answers(scene: Scene, fault: Fault) -> None:
    scene.first.faults.add(fault, times=None)
    assert [await scene.ask() for _ in range(3)] == ["second"] * 3
    assert scene.asked[0] <= 2
    assert scene.breaker.is_open


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (bad_request("This model's maximum context length is 10"), ContextTooLong),
        (bad_request("Invalid type for 'messages'", "messages"), ModelRefused),
        (content_filtered(), ContentRefused),
    ],
    ids=["too long", "malformed", "filtered"],
)
async def test_a_request_refused_for_its_content_does_not_go_to_the_second_model(
    scene: Scene, fault: ApiError, error: type[ModelError]
) -> None:
    scene.first.faults.add(fault)
    with pytest.raises(error):
        await scene.ask()
    assert scene.asked == (1, 0)
    assert not scene.breaker.is_open


async def test_the_first_model_answers_again_after_its_rest(scene: Scene) -> None:
    scene.first.faults.add(server_error())
    assert [await scene.ask(), await scene.ask()] == ["second", "second"]
    scene.now += 2
    assert [await scene.ask(), await scene.ask()] == ["first", "first"]
    assert scene.asked == (3, 2)


async def test_a_cancelled_turn_asks_no_model_any_more(scene: Scene) -> None:
    scene.first.faults.add(Break.HANG)
    asking = asyncio.create_task(scene.ask())
    await scene.first.wait_for(lambda _: True)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert scene.asked == (1, 0)
    assert await scene.ask() == "first"


async def test_if_both_models_fail_the_error_is_the_second_models(scene: Scene) -> None:
    scene.first.faults.add(server_error(), times=None)
    scene.second.faults.add(ApiError(401, "Incorrect API key"), times=None)
    with pytest.raises(ModelRefused, match="401"):
        await scene.ask()


async def test_internal_calls_use_the_second_model_too(scene: Scene) -> None:
    scene.first.faults.add(server_error(), times=None)
    assert await scene.internal.write("Say it.", "What?", 100) == "second"
    scene.second.faults.add(ApiError(401, "Incorrect API key"), times=None)
    for _ in range(2):  # the second time no request is made
        with pytest.raises(InternalModelUnavailable) as raised:
            await scene.internal.write("Say it.", "What?", 100)
        assert (raised.value.rests_s > 0, scene.asked[1]) == (True, 2)


async def test_an_internal_answer_that_is_cut_is_no_failing_server(scene: Scene) -> None:
    scene.first.responder = Scripted(Reply("cut", finish_reason="length"))
    with pytest.raises(InternalModelUnavailable):
        await scene.internal.write("Say it.", "What?", 100)
    assert not scene.breaker.is_open


class Timed:
    """A model whose answers take these seconds of simulated time, one after the other."""

    def __init__(self, name: str, limit_s: float, *seconds: float) -> None:
        self._name, self._limit_s = name, limit_s
        self._seconds = list(seconds)

    async def complete(self, *_: object, **__: object) -> ModelReply:
        async with time_limit(self._limit_s):
            await asyncio.sleep(self._seconds.pop(0))
        return ModelReply(self._name, (), "stop")


class TimedScene:
    """A first model that takes these seconds, and a second one that answers at once."""

    def __init__(self, *seconds: float) -> None:
        self.now = asyncio.get_running_loop().time
        self.breaker = CircuitBreaker(self.now)
        first, second = Timed("first", LIMIT_S / 2, *seconds), Timed("second", LIMIT_S, 0, 0, 0)
        self.pair: Resilient[ChatModel] = Resilient(first, second, self.breaker, LIMIT_S)
        self._chat = ResilientChatModel(self.pair, ModelCondition("answers", "OPENAI_MODEL"))

    async def ask(self) -> tuple[str, float]:
        """Return which model answered, and after how many seconds."""
        began = self.now()
        reply = await self._chat.complete(ModelRequest(HELLO))
        return reply.text, self.now() - began

    async def rest(self) -> None:
        """Let the first model be silent once, and let its rest end."""
        attempt = self.breaker.begin()
        assert attempt
        self.breaker.failed(attempt, in_silence=True)
        await asyncio.sleep(2)


def test_a_silent_first_model_leaves_the_second_half_the_time() -> None:
    async def play() -> None:
        assert await TimedScene(SILENCE).ask() == ("second", LIMIT_S / 2)

    VirtualLoop.play(play())


def test_a_request_does_not_wait_for_a_model_that_is_silent_to_another_request() -> None:
    async def play() -> None:
        scene = TimedScene(SILENCE, SILENCE)
        early = asyncio.create_task(scene.ask())
        await asyncio.sleep(LIMIT_S / 2 - 0.5)
        assert await scene.ask() == ("second", 0.5 + 0.5)
        assert await early == ("second", LIMIT_S / 2)

    VirtualLoop.play(play())


def test_a_probe_of_a_silent_model_costs_one_turn_half_a_second() -> None:
    async def play() -> None:
        scene = TimedScene(SILENCE)
        await scene.rest()
        assert [await scene.ask(), await scene.ask()] == [("second", 0.5), ("second", 0)]
        await scene.pair.close()

    VirtualLoop.play(play())


def test_a_slow_answer_to_a_probe_ends_the_rest() -> None:
    async def play() -> None:
        scene = TimedScene(0.9, 0)
        await scene.rest()
        assert [await scene.ask(), await scene.ask()] == [("second", 0.5), ("second", 0)]
        await asyncio.sleep(0.4)
        assert await scene.ask() == ("first", 0)

    VirtualLoop.play(play())


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(100.0)


@pytest.fixture
def breaker(clock: SimulatedClock) -> CircuitBreaker:
    return CircuitBreaker(clock)


def begun(breaker: CircuitBreaker) -> Attempt:
    attempt = breaker.begin()
    assert attempt
    return attempt


def test_rests_grow_from_2_to_40_seconds(breaker: CircuitBreaker, clock: SimulatedClock) -> None:
    pauses = []
    for _ in range(8):
        attempt, failed_at = begun(breaker), clock.now
        breaker.failed(attempt, in_silence=False)
        breaker.ended(attempt)
        while (probe := breaker.begin()) is None:
            clock.now += 1
        pauses.append(clock.now - failed_at)
        breaker.ended(probe)  # without a result; the next one fails
    assert pauses == [2, 4, 8, 16, 32, 40, 40, 40]


def test_only_one_attempt_at_a_time_is_a_probe_and_the_next_rest_counts_from_its_start(
    breaker: CircuitBreaker, clock: SimulatedClock
) -> None:
    breaker.failed(begun(breaker), in_silence=True)
    clock.now += 2
    probe = begun(breaker)
    assert probe.is_probe
    assert breaker.begin() is None
    breaker.ended(probe)
    probe = begun(breaker)
    assert probe.is_probe
    clock.now += 40
    breaker.failed(probe, in_silence=True)
    breaker.ended(probe)
    assert begun(breaker).is_probe


def test_attempts_that_already_run_do_not_lengthen_the_rest(
    breaker: CircuitBreaker, clock: SimulatedClock
) -> None:
    under_way = [begun(breaker) for _ in range(9)]
    for attempt in under_way:
        breaker.failed(attempt, in_silence=False)
    clock.now += 2
    assert begun(breaker).is_probe


def test_an_answer_ends_the_rest_and_the_silence(breaker: CircuitBreaker) -> None:
    assert not any(begun(breaker).is_probe for _ in range(3))  # it never failed until now
    assert not breaker.is_open
    breaker.failed(begun(breaker), in_silence=True)
    assert breaker.silence.is_set()
    assert breaker.answered()
    assert (breaker.is_open, breaker.silence.is_set()) == (False, False)
    assert not breaker.answered()


def test_what_one_persons_texts_cause_takes_a_model_from_nobody_else(clock: SimulatedClock) -> None:
    condition = ModelCondition("learning", "OPENAI_MEMORY_MODEL", breaker=CircuitBreaker(clock))
    for error in (ModelRefused("wrong key", 401), *[ContentRefused()] * 30):
        clock.now += 2
        with suppress(ModelError, ModelTrouble), condition.attempt(ModelTrouble):
            raise error
    assert not condition.breaker.is_open
