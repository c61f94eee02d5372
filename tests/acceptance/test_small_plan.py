"""On a Redis of 25 MB and 20 connections nothing is refused, and nothing is dropped unreported."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import time

import pytest

from memory.limits.dropping import Dropped
from memory.limits.stats import count_conversation
from memory.memory import Memory, MemoryOptions
from memory.queue.turns import TurnTimes
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.acceptance.rig import BotProcess, Rig, open_rig
from tests.memory.limits.filling import fill_up
from tests.memory.limits.old_days import DAY_S, OldDays
from tests.servers.bot_api import Chat, Person
from tests.servers.model_api import Reply
from tests.valkey import ValkeyServer

ADMIN_ID = 1000
CONNECTIONS = 4
DIMENSIONS = 512
TAIL = 80
TROUBLE = {
    "update refused",
    "turn failed",
    "turn interrupted",
    "learning failed",
    "periodic step postponed",
}

People = list[tuple[Person, Chat]]


@pytest.fixture
def small_valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    folder = tmp_path / "small"
    folder.mkdir()
    plan = ("--maxmemory", "25mb", "--maxclients", "20", "--maxmemory-policy", "noeviction")
    server = ValkeyServer(folder, *plan)
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def small_rig(small_valkey: ValkeyServer, tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(small_valkey.url, tmp_path, "webhook") as opened:
        opened.environment |= {
            "ADMIN_USER_IDS": str(ADMIN_ID),
            "OPENAI_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "REDIS_MAX_CONNECTIONS": str(CONNECTIONS),
            "LEASE_S": "30",
        }
        yield opened


@pytest.fixture
async def memory(small_rig: Rig) -> AsyncIterator[Memory]:
    """Give the bot's store, over one connection of the plan."""
    client = await RedisClient.open(small_rig.environment["REDIS_URL"], max_connections=1)
    options = MemoryOptions(365 * DAY_S, TAIL, 10**6, TurnTimes())
    bot_id = int(small_rig.telegram.token.partition(":")[0])
    yield Memory(client, bot_id, await TokenCounter.load(), None, options)
    await client.close()


class Weeks:
    """Earlier conversations: long messages, until the plan is this full.

    Only the first has vectors, as if the others were dropped: then messages must be dropped too.
    """

    def __init__(self, memory: Memory, people: People) -> None:
        self.messages_each = 0
        self._memory = memory
        self._people = people
        self._old_days = OldDays(memory, DIMENSIONS, chars=1500)
        self._day = time() - 60 * DAY_S

    async def pass_until(self, share: float) -> None:
        while (await self._memory.capacity.stats()).fill_level.share < share:
            for number, (person, chat) in enumerate(self._people):
                here = Scope.of_chat(chat.id)
                if number:
                    meta = self._memory.keys.scope(here).meta
                    await self._memory.client.call("HSET", meta, "lexical_only", 1)
                await self._old_days.talk(
                    here,
                    exchanges=8,
                    since=self._day + 60 * number,
                    until=self._day + DAY_S / 2,
                    sender=person.id,
                    fingerprint="" if number else f"hashed-words:{DIMENSIONS}",
                )
            self.messages_each += 16
            self._day += DAY_S / 2


async def connections(memory: Memory) -> int:
    """Count the connections of the bots."""
    return len(await memory.client.call("CLIENT LIST")) - 1


async def answered(person: Person, chat: Chat, text: str) -> None:
    said = await person.say(chat, text)
    await chat.wait_for_reply(after=said, timeout_s=30)


async def said_here(memory: Memory, chat: Chat, messages: int) -> Dropped:
    """Wait until this many messages are stored or dropped; return what was dropped.

    A reply is seen before its turn is committed.
    """
    async with asyncio.timeout(10):
        while True:
            here = Scope.of_chat(chat.id)
            count = await count_conversation(memory.client, memory.keys, here)
            if count.messages + count.dropped.messages == messages:
                return count.dropped


def trouble(*processes: BotProcess) -> list[str]:
    return [
        raw
        for each in processes
        for raw, line in zip(each.raw, each.log, strict=True)
        if line["event"] in TROUBLE
    ]


async def test_a_day_of_20_people_refuses_nothing_and_drops_the_least_useful_data(
    small_rig: Rig, memory: Memory
) -> None:
    rig = small_rig
    people = [rig.person(2001 + number, f"Person{number}") for number in range(20)]
    ada, adas = rig.person(ADMIN_ID, "Ada")
    weeks, said_each = Weeks(memory, people), 3
    await weeks.pass_until(0.91)
    greeted = await ada.say(adas, "/start")
    await rig.start()
    other = rig.another_bot()
    await other.start()
    await adas.wait_for_reply(after=greeted)
    for number in range(said_each):
        # Not all at once: twenty cold histories on their way count as memory that Redis uses.
        for half in (people[:10], people[10:]):
            await asyncio.gather(
                *(answered(*each, f"Keep the number {each[0].id}-{number} for me") for each in half)
            )
    await rig.telegram.wait_for(lambda: "Messages dropped" in adas.transcript(), timeout_s=20)

    dropped = Dropped()
    for person, chat in people:
        dropped += await said_here(memory, chat, weeks.messages_each + 2 * said_each)
        log = memory.keys.scope(Scope.of_chat(chat.id)).log
        newest = await memory.client.call("XREVRANGE", log, "+", "-", "COUNT", TAIL)
        assert len(newest) == TAIL
        stored = b"\n".join(fields[b"t"] for _, fields in newest[: 2 * said_each]).decode()
        assert all(f"{person.id}-{number}" in stored for number in range(said_each))
    stats = await memory.capacity.stats()
    assert (stats.dropped, stats.fill_level.share < 0.9) == (dropped, True)
    assert (dropped.messages > 0, dropped.vectors >= weeks.messages_each) == (True, True)

    notices = [message.text.partition("\n")[0] for message in adas.replies]
    assert {"My memory is filling up", "I've made room in my memory"} < set(notices)
    assert len(notices) == 3  # and the greeting
    shown = await rig.ask(ada, adas, "/stats")
    assert f"search entries {dropped.vectors}, messages {dropped.messages}" in shown.text
    inspected = await rig.ask(ada, adas, "/inspect 2001")
    assert "Dropped here to make room" in inspected.text
    assert await connections(memory) <= 2 * CONNECTIONS
    assert trouble(rig.bot, other) == []


async def test_32_turns_at_once_stay_within_the_connections_of_a_process(
    small_rig: Rig, memory: Memory
) -> None:
    rig, gate = small_rig, asyncio.Event()
    await rig.start(max_concurrent_turns=32)
    people = [rig.person(2001 + number, f"Person{number}") for number in range(32)]
    rig.script.on("Think", *(Reply("I did.", gate=gate) for _ in people))
    asking = [asyncio.create_task(rig.ask(*each, "Think")) for each in people]
    counts = [await connections(memory)]
    await rig.wait_until_asked("Think", times=len(people))
    counts.append(await connections(memory))
    gate.set()
    for done in asyncio.as_completed(asking):
        await done
        counts.append(await connections(memory))
    assert 2 <= max(counts) <= CONNECTIONS
    assert trouble(rig.bot) == []


async def test_when_nothing_may_be_dropped_telegram_keeps_the_messages_until_there_is_room(
    small_rig: Rig, memory: Memory, small_valkey: ValkeyServer
) -> None:
    rig = small_rig
    await rig.start()
    (anna, annas), (ada, adas) = rig.anna(), rig.person(ADMIN_ID, "Ada", "de")
    await rig.ask(ada, adas, "/stats")
    await fill_up(memory)
    said = await anna.say(annas, "Are you there?")
    await rig.bot.wait_for_log("update refused")
    await rig.telegram.wait_for(lambda: "Mein Gedächtnis ist voll" in adas.transcript())
    assert "MB" in (await rig.ask(ada, adas, "/stats")).text
    assert not annas.replies

    small_valkey.ask("CONFIG SET maxmemory 50mb")
    reply = await annas.wait_for_reply(after=said, timeout_s=20)
    assert reply.text == "All right."
    assert (await rig.ask(anna, annas, "And now?")).text == "All right."
    notices = [message.text.partition("\n")[0] for message in adas.replies]
    assert notices.count("Mein Gedächtnis ist voll, und mehr darf ich nicht entfernen") == 1
