"""10,000 messages saved and restored by real processes, which are killed at many points.

    python -m tests.lab.backups

`kill -9` ends a backup and a restore after a part of the time that each needs; then it is run
again. What `/export` shows of every conversation must be the same in both stores.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import orjson

from memory.memory import Memory, MemoryOptions
from memory.queue.turns import TurnTimes
from memory.scopes.changes import Write
from memory.scopes.entries import Fact
from memory.scopes.log import packed
from memory.scopes.sources import Source
from memory.store.client import RedisClient
from memory.store.commands import Arg, Command
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.lab.bots import ROOT
from tests.valkey import ValkeyServer

BOT = 123456
MESSAGES, CHATS = 10_000, 20
KILLS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""After which shares of the time of a whole run; the start of a process takes the first half."""
TTL_S = 365 * 86_400
OPTIONS = MemoryOptions(TTL_S, 50, 10_000_000, TurnTimes(2_000, 0, 0))
PLACES = [Scope.of_chat(1_000 + number) for number in range(CHATS)]


async def main() -> None:
    """Fill a store, save and restore it with and without kills, and print the figures."""
    tokens = await TokenCounter.load()
    with tempfile.TemporaryDirectory() as folder:
        servers = [ValkeyServer(Path(folder)), ValkeyServer(Path(folder))]
        for server in servers:
            server.start()
        try:
            await _measure(Path(folder) / "lab.backup", servers, tokens)
        finally:
            for server in servers:
                server.stop()


async def _measure(file: Path, servers: list[ValkeyServer], tokens: TokenCounter) -> None:
    clients = [await RedisClient.open(server.url) for server in servers]
    source, target = (Memory(client, BOT, tokens, None, OPTIONS) for client in clients)
    await source.migrate()
    await _fill(source)
    saving_s = await _run(servers[0], "backup", file)
    restoring_s = await _run(servers[1], "restore", file)
    expected = [await _exported(source, place) for place in PLACES]
    assert [await _exported(target, place) for place in PLACES] == expected
    size_mb = (await asyncio.to_thread(file.stat)).st_size / 2**20
    _say(
        f"{MESSAGES} messages: backup {saving_s:.1f} s, {size_mb:.1f} MB; "
        f"restore {restoring_s:.1f} s; equal by /export"
    )
    for share in KILLS:
        await asyncio.to_thread(file.unlink)
        servers[1].ask("FLUSHALL")
        await _run(servers[0], "backup", file, kill_after_s=share * saving_s)
        whole = await asyncio.to_thread(file.exists)
        await _run(servers[0], "backup", file)
        await _run(servers[1], "restore", file, kill_after_s=share * restoring_s)

        logs = [await clients[1].call("EXISTS", target.keys.scope(p).log) for p in PLACES]
        await _run(servers[1], "restore", file)
        assert [await _exported(target, place) for place in PLACES] == expected
        _say(f"killed at {share:.0%}: file there {whole}, {sum(logs)} of {CHATS} chats restored")
    for client in clients:
        await client.close()


async def _fill(memory: Memory) -> None:
    vectors = np.random.default_rng(1).standard_normal((MESSAGES, 512)).astype(np.float32)
    now = time.time()
    for number, place in enumerate(PLACES):
        keys = memory.keys.scope(place)
        commands: list[Command] = []
        count = MESSAGES // CHATS
        for seq in range(1, count + 1):
            role, sender = ("user", place.chat_id) if seq % 2 else ("assistant", 0)
            text = f"Message {seq} of chat {number}: " + "sailing in the wind " * 8
            fields: dict[str, Arg] = {
                "x": (seq + 1) // 2,
                "r": role,
                "t": text,
                "s": f"{now:.3f}",
                "i": sender,
            }
            fields |= {"n": "Ann", "m": seq, "k": 40}
            pairs = [part for pair in fields.items() for part in pair]
            commands.append(("XADD", keys.log, f"{seq}-0", *pairs))
            vector = packed(vectors[number * count + seq - 1])
            commands.append(("XADD", keys.vectors, f"{seq}-0", "v", vector))
        meta = ("next_seq", count, "exchanges", count // 2, "generation", int(now * 1000))
        commands.append(("HSET", keys.meta, *meta, "vector_fingerprint", "lab"))
        commands += [("EXPIRE", name, TTL_S) for name in (keys.meta, keys.log, keys.vectors)]
        commands.append(("ZADD", memory.keys.index_of(place), int(now), place.tag))
        await memory.client.pipeline(commands)
        person = place.facts_scope
        fact = Fact(0, f"Sails boat {number}", (Source(place.tag, 1),), now)
        await memory.scopes.write(await memory.scopes.read(person), Write([fact]))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _exported(memory: Memory, place: Scope) -> object:
    memory.scopes.drop(place)
    memory.scopes.drop(place.facts_scope)
    read = orjson.loads((await memory.exporter.export(place)).content)
    del read["exported_at"]
    return read


async def _run(
    server: ValkeyServer, command: str, file: Path, kill_after_s: float | None = None
) -> float:
    """Run a command to its end, or kill it after a time; return how long it took."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(file.parent),
        "TELEGRAM_BOT_TOKEN": f"{BOT}:AAbbccddeeffgghhiijjkkllmmnnooppqqr",
        "REDIS_URL": server.url,
        "BACKUP_PASSPHRASE": "open sesame",
    }
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", command, str(file)),
        cwd=ROOT,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    if kill_after_s is None:
        assert await process.wait() == 0
    else:
        await asyncio.sleep(kill_after_s)
        if process.returncode is None:
            process.kill()
        await process.wait()
    return time.monotonic() - began


if __name__ == "__main__":
    asyncio.run(main())
