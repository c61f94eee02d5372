"""Several nodes: every step finds its slot, and a primary that dies costs what README says."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memory.history import ChatHistory
from memory.keys import Conversation
from memory.learning.learner import Teaching
from memory.memory import Memory, MemoryOptions
from memory.notebook.writes import Remember, to_json
from memory.protocol.jobs import Job
from memory.protocol.turns import Closing, TurnTimes
from memory.redis_client import RedisClient
from memory.tokens import TokenCounter
from tests.cluster.day import Day, accept, work
from tests.cluster.nodes import ThreeNodeCluster
from tests.learning.scripted import Notes, ScriptedModel, talk
from tests.memory.conftest import OPTIONS, tokens
from tests.memory.words_embedder import WordsEmbedder

__all__ = ["tokens"]

pytestmark = pytest.mark.xdist_group("cluster")

CHATS = [Conversation.of_chat(number) for number in range(1, 31)]
LEASE_S = 2.0
DURABLE_S = 1.0
"""Replication is asynchronous: what was acknowledged so shortly before may be lost."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ThreeNodeCluster]:
    cluster = ThreeNodeCluster(tmp_path)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
async def client(cluster: ThreeNodeCluster) -> AsyncIterator[RedisClient]:
    client = await RedisClient.open(cluster.url)
    yield client
    await client.close()


async def test_every_step_works_wherever_its_slot_is(
    client: RedisClient, tokens: TokenCounter
) -> None:
    memory = Memory(client, 42, tokens, WordsEmbedder(), OPTIONS)
    model = ScriptedModel()
    memory.teach(Teaching([Notes(every=1), Notes("own", every=1, is_personal=True)], model))
    model.parts = {"notes": {"text": "likes boats"}, "own": {"text": "owns Aurora"}}
    wanted = Closing(writes=to_json([Remember("Ann sails")]))
    for chat in CHATS:
        await talk(memory, "My boat is called Aurora", conversation=chat, closing=wanted)
        await memory.learn(chat)
        history = await ChatHistory.read(memory.histories, chat)
        assert [hit.seq for hit in await history.search("boat", 4)] == [1]
        facts = (await memory.notebooks.read(Conversation.of_person(chat.chat_id))).facts
        assert [fact.text for fact in facts] == ["Ann sails", "owns Aurora"]
    job = Job("nonce", "forget", 7, 10_000, time.time() + 1, b"[]")
    await memory.jobs.start(job)
    finished = await memory.jobs.run(job.id)
    assert finished is not None
    assert finished.receipt.messages == 2 * len(CHATS)


async def test_a_primary_that_dies_loses_at_most_what_was_not_replicated(
    cluster: ThreeNodeCluster, client: RedisClient, tokens: TokenCounter
) -> None:
    day, stopping = Day(), asyncio.Event()
    options = MemoryOptions(86_400, 50, 1_000_000, TurnTimes(int(LEASE_S * 1000), 0, 0))
    memory = Memory(client, 42, tokens, None, options)
    working = asyncio.create_task(work(memory, day, stopping, lease_s=LEASE_S))
    killed_at = 0.0
    for update_id in range(1, 301):
        await accept(memory, day, update_id, CHATS[update_id % len(CHATS)])
        if update_id == 100:
            killed_at = time.monotonic()
            cluster.nodes[1].kill()
    doubtful = {
        update_id
        for update_id, at in day.accepted.items()
        if killed_at - DURABLE_S <= at <= killed_at + DURABLE_S
    }
    sure = day.accepted.keys() - doubtful
    async with asyncio.timeout(60):
        while not sure <= day.sent.keys():  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.1)
    stopping.set()
    await working
    lost = day.accepted.keys() - day.sent.keys()
    doubled = {update_id for update_id, count in day.sent.items() if count > 1}
    assert lost <= doubtful
    assert day.out_of_order == 0
    # What was being sent when its primary died is sent once more.
    assert len(doubled) <= len(CHATS)
