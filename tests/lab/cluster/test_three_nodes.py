"""Several nodes: every step finds its slot, and a dead primary loses only what README says.

The protocol is the product's. Only the runner is made up; it answers with the updates' numbers.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from bot.turn.permits import Permits
from bot.turn.worker import TurnWorker
from memory.erasure.jobs import Job
from memory.memory import Memory, MemoryOptions
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Closing, Committed, OpenTurn
from memory.queue.turn_store import TurnTimes
from memory.scopes.history import ChatHistory
from memory.scopes.log import Cursor
from memory.scopes.writes import Remember, to_json
from memory.store.client import RedisClient
from memory.store.errors import StoreError, StoreUnavailable
from memory.store.keys import Scope
from tests.lab.cluster.nodes import VICTIMS, ThreeNodeCluster, primary_of, primary_of_victim
from tests.memory.conftest import memory_of
from tests.memory.learning.scripted import Notes, ScriptedModel, talk
from tests.memory.turns import carry_out
from tests.memory.words_embedder import WordsEmbedder

pytestmark = [pytest.mark.trial, pytest.mark.xdist_group("cluster")]

CHATS = [Scope.of_chat(number) for number in range(1, 31)]
LEASE_S = 2.0
_PATIENCE_S = 30


@dataclass(slots=True)
class Day:
    """When each update was accepted and first answered, how often, and which turns are closed."""

    accepted: dict[int, float] = field(default_factory=dict)
    sent: Counter[int] = field(default_factory=Counter)
    sent_at: dict[int, float] = field(default_factory=dict)
    order: list[tuple[str, int]] = field(default_factory=list)
    closed: set[int] = field(default_factory=set)

    @property
    def lost(self) -> set[int]:
        """Updates that were accepted and not answered; final when no update waits any more."""
        return self.accepted.keys() - self.sent.keys()

    @property
    def doubled(self) -> set[int]:
        """Updates that were answered more than once."""
        return {update_id for update_id, times in self.sent.items() if times > 1}

    @property
    def out_of_order(self) -> int:
        """How often an update was answered before an earlier one of its chat."""
        by_chat: dict[str, list[int]] = {}
        for tag, update_id in self.order:
            by_chat.setdefault(tag, []).append(update_id)
        firsts = (list(dict.fromkeys(ids)) for ids in by_chat.values())
        return sum(a > b for ids in firsts for a, b in itertools.pairwise(ids))


class EchoRunner:
    """Answers a turn as the bot does: outbox, send, commit."""

    def __init__(self, memory: Memory, day: Day) -> None:
        self._memory = memory
        self._day = day

    async def run(self, turn: OpenTurn) -> Committed:
        updates = [entry.update_id for entry in turn.entries]
        if not turn.outbox:
            await self._memory.turns.write_outbox(turn, b"answer")
        for update_id in updates:
            self._day.sent[update_id] += 1
            self._day.sent_at.setdefault(update_id, time.monotonic())
            self._day.order.append((turn.lease.conversation.tag, update_id))
        text = " ".join(map(str, updates))
        now = time.time()
        messages = [
            Message(0, 0, "user", text, now, turn.entries[0].sender_id, "Ann", (1,), 3),
            Message(0, 0, "assistant", f"answered {text}", now, tokens=3),
        ]
        committed = await self._memory.turns.commit(turn, messages, Cursor())
        self._day.closed.update(updates)
        return committed


async def accept(memory: Memory, day: Day, update_id: int, conversation: Scope) -> None:
    """Deliver an update as Telegram does, again and again until it is accepted."""
    entry = Entry(update_id, conversation.chat_id, is_alone=False, body=b"text")
    async with asyncio.timeout(_PATIENCE_S):
        while update_id not in day.accepted:
            try:
                await memory.mailbox.put(conversation, entry)
                day.accepted[update_id] = time.monotonic()
            except StoreError:
                await asyncio.sleep(0.1)


async def work(memory: Memory, day: Day, stopping: asyncio.Event) -> None:
    """Answer until `stopping` is set, and sweep for conversations whose wake-up was lost."""
    permits = Permits(4, memory.mailbox.wake)
    ready_queue, run_turn = memory.ready_queue(), EchoRunner(memory, day).run
    worker = TurnWorker(ready_queue, memory.turns, memory.histories, permits, run_turn, 16)
    tasks = [asyncio.create_task(worker.run()), asyncio.create_task(_sweep(memory))]
    await stopping.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await worker.stop(1)


async def _sweep(memory: Memory) -> None:
    while True:
        with suppress(StoreError):
            await memory.sweep.wake_waiting(everything=True)
        await asyncio.sleep(1)


@pytest.fixture
async def client(cluster: ThreeNodeCluster) -> AsyncIterator[RedisClient]:
    client = await RedisClient.open(cluster.url)
    yield client
    await client.close()


async def test_every_step_works_on_every_node(whole_cluster: ThreeNodeCluster) -> None:
    client = await RedisClient.open(whole_cluster.url)
    memory = memory_of(client, WordsEmbedder())
    model = ScriptedModel()
    memory.enable_learning([Notes(every=1), Notes("own", every=1, is_personal=True)], model)
    model.parts = {"notes": {"text": "likes boats"}, "own": {"text": "owns Aurora"}}
    wanted = Closing(writes=to_json([Remember("Ann sails")]))
    for chat in CHATS:
        await talk(memory, "My boat is called Aurora", conversation=chat, closing=wanted)
        await memory.learn(chat)
        history = await ChatHistory.read(memory.histories, chat)
        assert next(hit.seq for hit in await history.search("boat", 4)) == 1
        facts = (await memory.scopes.read(Scope.of_person(chat.chat_id))).facts
        assert [fact.text for fact in facts] == ["Ann sails", "owns Aurora"]
    job = Job("nonce", "forget", 7, 10_000, time.time() + 1, b"[]")
    finished = await carry_out(memory, job)
    assert finished.receipt.messages == 2 * len(CHATS)
    await client.close()


@pytest.mark.parametrize("victim", VICTIMS)
async def test_a_primary_that_dies_loses_at_most_what_was_not_replicated(
    cluster: ThreeNodeCluster, client: RedisClient, victim: str
) -> None:
    day, stopping = Day(), asyncio.Event()
    options = MemoryOptions(86_400, 50, 1_000_000, TurnTimes(int(LEASE_S * 1000), 0, 0))
    memory = memory_of(client, options=options)
    dying = primary_of_victim(victim, memory.keys)
    working = asyncio.create_task(work(memory, day, stopping))
    cut_at = killed_at = 0.0
    closed_before = frozenset[int]()
    for update_id in range(1, 301):
        await accept(memory, day, update_id, chat_of(update_id))
        if update_id == 100:
            cut_at, closed_before = time.monotonic(), frozenset(day.closed)
            cluster.cut_off(dying)
        if update_id == 150:
            killed_at = time.monotonic()
            primary, replica = cluster.pair(dying)
            primary.kill()
            replica.resume()
    await nothing_waits(memory)
    stopping.set()
    await working

    there = {update_id for update_id in day.accepted if primary_of_chat(memory, update_id) == dying}
    # A sweep sends lost wake-ups again, so updates on the other primaries are answered.
    assert day.lost <= {each for each in there if cut_at <= day.accepted[each] <= killed_at}
    assert day.out_of_order == 0
    # Only what was being sent when its primary died is sent once more. A commit first notes, on the
    # primary of the ready queue, that there is something to learn; if that primary dies, this
    # concerns all turns that were running.
    replaced_at = min(day.accepted[each] for each in there if day.accepted[each] > killed_at)
    in_doubt = {
        each
        for each in (there if victim == "conversations" else day.accepted)
        if day.sent_at.get(each, replaced_at) <= replaced_at
    } - closed_before
    assert day.doubled <= in_doubt
    assert max(day.sent.values()) <= 2


async def test_wake_ups_that_died_with_their_primary_are_sent_again(
    cluster: ThreeNodeCluster, client: RedisClient
) -> None:
    memory, day = memory_of(client), Day()
    dying = primary_of(memory.keys.ready_queue)
    for update_id in range(len(CHATS)):  # a sweep finds only chats in the index
        await accept(memory, day, update_id, chat_of(update_id))
    await answer_all(memory, day)
    cluster.cut_off(dying)
    without_wake_up = range(len(CHATS), 2 * len(CHATS))
    for update_id in without_wake_up:
        await accept(memory, day, update_id, chat_of(update_id))
    primary, replica = cluster.pair(dying)
    primary.kill()
    replica.resume()
    await answer_all(memory, day)
    assert day.lost == {each for each in without_wake_up if primary_of_chat(memory, each) == dying}
    assert set(day.sent.values()) == {1}


def chat_of(update_id: int) -> Scope:
    return CHATS[update_id % len(CHATS)]


def primary_of_chat(memory: Memory, update_id: int) -> int:
    return primary_of(memory.keys.scope(chat_of(update_id)).mailbox)


async def nothing_waits(memory: Memory) -> None:
    """Return when all mailboxes are empty; an update stays there until its turn is closed."""
    mailboxes = [memory.keys.scope(chat).mailbox for chat in CHATS]
    asked, waiting = [("ZCARD", mailbox) for mailbox in mailboxes], [1]
    async with asyncio.timeout(60):
        while any(waiting):
            await asyncio.sleep(0.1)  # Redis sends no event
            with suppress(StoreUnavailable):
                waiting = await memory.client.pipeline(asked)


async def answer_all(memory: Memory, day: Day) -> None:
    """Run a worker until all mailboxes are empty."""
    stopping = asyncio.Event()
    working = asyncio.create_task(work(memory, day, stopping))
    await nothing_waits(memory)
    stopping.set()
    await working
