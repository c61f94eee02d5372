"""25 MB and 20 connections carry many turns at once; when they are full, no message is lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memory.memory import Memory, MemoryOptions
from memory.queue.turn_store import TurnTimes
from tests.acceptance.bot_process import BotProcess
from tests.acceptance.rig import Rig, open_rig
from tests.memory.conftest import memory_of
from tests.memory.limits.conftest import fill_up
from tests.servers.bot_api import Chat, Person
from tests.servers.model_api import Reply
from tests.valkey import ValkeyServer, opened

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
    plan = ("--maxmemory", "25mb", "--maxclients", "20", "--maxmemory-policy", "noeviction")
    with ValkeyServer(tmp_path / "small", *plan) as server:
        yield server


@pytest.fixture
async def small_rig(small_valkey: ValkeyServer, tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(small_valkey.url, tmp_path, "webhook") as opened:
        opened.environment |= {
            "ADMIN_USER_IDS": str(ADMIN_ID),
            "OPENAI_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "REDIS_MAX_CONNECTIONS": str(CONNECTIONS),
        }
        yield opened


@pytest.fixture
async def memory(small_rig: Rig) -> AsyncIterator[Memory]:
    """Give the bot's store, over one connection of the plan."""
    async with opened(small_rig.environment["REDIS_URL"], max_connections=1) as client:
        options = MemoryOptions(365 * 86_400, TAIL, 10**6, TurnTimes())
        bot_id = int(small_rig.telegram.token.partition(":")[0])
        yield memory_of(client, options=options, bot=bot_id)


async def connections(memory: Memory) -> int:
    """Count the connections of the bots."""
    return len(await memory.client.call("CLIENT LIST")) - 1


def trouble(*processes: BotProcess) -> list[str]:
    return [
        raw
        for each in processes
        for raw, line in zip(each.raw, each.log, strict=True)
        if line["event"] in TROUBLE
    ]


async def test_32_turns_at_once_stay_within_the_connections_of_a_process(
    small_rig: Rig, memory: Memory
) -> None:
    rig, gate = small_rig, asyncio.Event()
    await rig.start()
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


async def test_when_redis_is_full_telegram_keeps_the_messages_until_there_is_room(
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
    reply = await annas.wait_for_reply(after=said)
    assert reply.text == "All right."
    assert (await rig.ask(anna, annas, "And now?")).text == "All right."
    notices = [message.text.partition("\n")[0] for message in adas.replies]
    assert notices.count("Mein Gedächtnis ist voll") == 1
