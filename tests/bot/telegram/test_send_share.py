"""Each worker keeps to its part of what the bot may send; who comes or goes changes the parts."""

import asyncio

import pytest

from bot.telegram.rate_limit import OutboundBudget
from bot.telegram.send_share import Sharing
from memory.queue.mailbox import Mailbox
from memory.queue.ready_queue import ReadyQueue
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.store.scripts import Scripts
from memory.store.store import Store
from tests.bot.telegram.pacing import KEYS, paces_of


async def at_once(budget: OutboundBudget) -> int:
    """Return how many chats can be spoken to before anybody has to wait."""
    for n, chat_id in enumerate(range(1, 100)):
        async for _ in budget.waits(chat_id):
            return n
    return 100


@pytest.mark.parametrize(("workers", "expected"), [(0, 6), (1, 6), (2, 3), (5, 2)])
async def test_what_is_allowed_at_once_is_shared_by_who_listens(
    store: RedisClient, workers: int, expected: int
) -> None:
    scripts = Scripts(store)
    doorbells = [ReadyQueue(store, scripts, KEYS.ready_queue) for _ in range(workers)]
    if doorbells:
        await doorbells[0].read(1, 1)  # creates the group
    mailbox = Mailbox(Store(store, KEYS, scripts, asyncio.Event(), ttl_s=3600))
    for chat_id, ready_queue in enumerate(doorbells):
        await mailbox.wake(Scope.of_chat(chat_id))
        await ready_queue.read(1, 100)
    budget = OutboundBudget(30, paces_of(store), lambda: 50.0)
    await Sharing(ReadyQueue(store, scripts, KEYS.ready_queue), budget, lease_s=30).look()
    assert await at_once(budget) == expected


async def test_nobody_is_counted_where_there_is_no_budget_to_share(store: RedisClient) -> None:
    budget = OutboundBudget(0, paces_of(store))
    async with asyncio.timeout(5):
        await Sharing(ReadyQueue(store, Scripts(store), KEYS.ready_queue), budget, lease_s=30).run()
