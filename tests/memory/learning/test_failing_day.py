"""What a day with a failing model costs: a real server counts calls, the clock is injected."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from time import time

import pytest

from bot.model.embedder import OpenAIEmbedder
from bot.model.openai_client import ModelClient, open_client
from bot.model.resilience import ModelCondition, Part, Resilient
from bot.model.structured import InternalCalls, StructuredModel
from memory.learning import learner, progress
from memory.queue import ready_queue as sweep
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.text.internal_model import InternalModelUnavailable
from tests.memory.conftest import ON_A_SERVER, memory_of
from tests.memory.learning.scripted import Notes, talk
from tests.servers.model_api import (
    ApiError,
    Dialect,
    ModelApiServer,
    Scripted,
    content_filtered,
    is_embeddings,
)

DAY_S = 86_400
CHATS = [Scope.of_chat(chat) for chat in (7, 8, 9)]
WRONG_KEY = ApiError(401, "Incorrect API key", code="invalid_api_key")
NO_SUCH_PAGE = ApiError(404, "Not found")
NOT_NOW = ApiError(503, "Overloaded", headers={"retry-after": "0"})


class Day:
    """One process of a bot, its clock, and the server of its models."""

    def __init__(self, store: RedisClient, server: ModelApiServer) -> None:
        self.now = time()
        self.server = server
        self._store = store

    def start(self, client: ModelClient, *, embeds: bool = False, model: str = "m") -> None:
        """Begin a process: it knows nothing of what failed before."""
        model_ = StructuredModel(client, "m", timeout_s=60)
        internal = InternalCalls(Resilient(model_), self._condition("learning"))
        embedder = OpenAIEmbedder(client, "e", None, 10, condition=self._condition("vectors"))
        self.memory = memory_of(self._store, embedder if embeds else None)
        self.notes = Notes(every=1)
        self.memory.enable_learning([] if embeds else [self.notes], internal, model_name=model)

    def _condition(self, part: Part) -> ModelCondition:
        condition = ModelCondition(part, "OPENAI_MEMORY_MODEL")
        condition.breaker.clock = lambda: self.now
        return condition

    async def pass_(self, seconds: float) -> int:
        """Let time pass; return how many calls were made."""
        before, end = len(self.server.log.calls), self.now + seconds
        learning = self.memory.keys.learning
        while True:
            first = await self.memory.client.call("ZRANGE", learning, 0, 0, "WITHSCORES")
            if not first or first[0][1] > end:
                self.now = end
                return len(self.server.log.calls) - before
            self.now = max(self.now, first[0][1])
            for conversation in await self.memory.sweep.take_late_learning(4):
                with suppress(InternalModelUnavailable, EmbeddingsUnavailable):
                    await self.memory.learn(conversation)


@pytest.fixture
def script() -> Scripted:
    return Scripted("All right.")


@pytest.fixture
async def server(script: Scripted) -> AsyncIterator[ModelApiServer]:
    async with ModelApiServer(script) as server:
        yield server


@pytest.fixture
async def client(server: ModelApiServer) -> AsyncIterator[ModelClient]:
    async with open_client(server.base_url, "any", timeout_s=60, retries=0) as client:
        yield client


@pytest.fixture
def day(store: RedisClient, server: ModelApiServer, monkeypatch: pytest.MonkeyPatch) -> Day:
    day = Day(store, server)
    for module in (learner, progress, sweep):
        monkeypatch.setattr(module, "time", lambda: day.now)
    return day


async def have_talked(day: Day, chats: Sequence[Scope] = CHATS) -> None:
    for chat in chats:
        await talk(day.memory, "one", "two", conversation=chat)


@ON_A_SERVER
@pytest.mark.parametrize(
    ("fault", "calls"),
    [(None, 22), (WRONG_KEY, 11), (NO_SUCH_PAGE, 22), (content_filtered(), 15), (NOT_NOW, 100)],
    ids=["no JSON", "401", "404", "filter", "503"],
)
async def test_a_memory_model_that_fails_is_asked_less_and_less(
    day: Day, client: ModelClient, fault: ApiError | None, calls: int
) -> None:
    """Without waits it was 8,640 calls for three silent chats, or 4,320 with a wrong key."""
    if fault:
        day.server.faults.add(fault, times=None)
    day.start(client)
    await have_talked(day)
    assert await day.pass_(DAY_S) == calls


@ON_A_SERVER
async def test_a_restart_keeps_the_wait_and_a_repaired_model_learns_everything(
    day: Day, client: ModelClient, script: Scripted
) -> None:
    day.start(client)
    await have_talked(day, CHATS[:1])
    first = await day.pass_(DAY_S / 2)
    day.start(client)
    assert (first, await day.pass_(DAY_S / 2)) == (20, 2)
    script.on(lambda _: True, '{"notes": {"text": "Ann counts"}}')
    await day.pass_(DAY_S)
    assert sorted(day.notes.batches) == [[1, 2], [3, 4]]


@ON_A_SERVER
async def test_another_memory_model_is_asked_at_once(day: Day, client: ModelClient) -> None:
    day.start(client)
    await have_talked(day)
    await day.pass_(DAY_S)
    day.start(client, model="another")
    calls = len(day.server.log.calls)
    with suppress(InternalModelUnavailable):
        await day.memory.learn(CHATS[0])
    assert len(day.server.log.calls) > calls


@ON_A_SERVER
async def test_a_missing_embedding_endpoint_is_asked_rarely(day: Day, client: ModelClient) -> None:
    day.server.faults.add(NO_SUCH_PAGE, times=None, when=is_embeddings)
    day.start(client, embeds=True)
    await have_talked(day)
    assert await day.pass_(DAY_S) == 11
    day.server.faults.clear()
    await day.pass_(DAY_S)
    for chat in CHATS:
        vectors = day.memory.keys.scope(chat).vectors
        assert await day.memory.client.call("XLEN", vectors) == 4


@ON_A_SERVER
async def test_a_message_that_the_memory_model_refuses_does_not_block_later_ones(
    day: Day, client: ModelClient, script: Scripted
) -> None:
    script.on(lambda _: True, '{"notes": {"text": "Ann counts"}}')
    day.server.dialect = Dialect(filtered=frozenset({"badword"}))
    day.start(client)
    said = [*map(str, range(12)), "badword", *map(str, range(12))]
    await talk(day.memory, *said, conversation=CHATS[0])
    calls = await day.pass_(3600)
    learned = sorted(seq for batch in day.notes.batches for seq in batch)
    assert learned == [seq for seq in range(1, 51) if seq not in (25, 26)]
    assert calls <= 12
