"""Faults of the store: Redis is restarted, away, full, cut off, or has lost its scripts."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.lab.faults.fault import Fault
from tests.lab.faults.moments import ASKING, BEING_SENT, SENDING, USING_A_TOOL
from tests.lab.faults.scene import MANY, Scene, Stage
from tests.valkey import ValkeyServer

_PAUSE_S = 0.7
_FULL_S = 3
_MANY = Stage(roles=MANY)
_POLLED = Stage(intake="polling")


async def _killed(scene: Scene) -> None:
    """Kill Redis at any moment and start it again with its data."""
    await _amid_turns(scene)
    scene.redis.kill()
    async with _resuming(scene):
        scene.redis.start()


async def _restarted(scene: Scene) -> None:
    """Stop Redis for a moment, as an administrator does."""
    await _amid_turns(scene)
    scene.redis.stop()
    async with _resuming(scene):
        await _for_a_while(scene)
        scene.redis.start()


async def _gone(scene: Scene, *, for_s: float) -> None:
    """Stop Redis for long, while people continue to talk."""
    await _amid_turns(scene)
    scene.redis.stop()
    async with _resuming(scene):
        async with asyncio.TaskGroup() as group:
            group.create_task(scene.talk(6))
            await asyncio.sleep(for_s)
        scene.redis.start()


async def _full(scene: Scene) -> None:
    """Let Redis refuse writes as a full one does (`OOM command not allowed`), then end that."""
    await _amid_turns(scene)
    [bot, *_] = scene.bots
    seen = len(bot.log)
    scene.redis.ask("CONFIG SET maxmemory 1")
    async with scene.resuming():
        async with asyncio.TaskGroup() as group:
            group.create_task(scene.talk(4))
            await asyncio.sleep(_FULL_S)
        assert bot.lines("update refused", after=seen, reason="StoreFull")
        scene.redis.ask("CONFIG SET maxmemory 0")


async def _disturbed(scene: Scene, *, command: str) -> None:
    """Send a command to Redis repeatedly."""
    for _ in range(10):
        await _for_a_while(scene, _PAUSE_S / 5)
        scene.redis.ask(command)


async def _amid_turns(scene: Scene) -> None:
    await (BEING_SENT, ASKING, SENDING, USING_A_TOOL)[scene.round % 4].provoke(scene)


async def _for_a_while(scene: Scene, max_s: float = _PAUSE_S) -> None:
    await asyncio.sleep(scene.random.uniform(0, max_s))


@asynccontextmanager
async def _resuming(scene: Scene) -> AsyncIterator[None]:
    """Do the same as `scene.resuming` for a stopped Redis: read its data from a copy."""
    with TemporaryDirectory() as folder:
        shutil.copytree(scene.redis.folder, folder, dirs_exist_ok=True)
        with ValkeyServer(Path(folder), "--appendonly", "yes") as copy:
            async with scene.resuming(copy.url):
                yield


FAULTS = (
    Fault("Redis: killed and started again", _killed, rounds=5, sample=4),
    Fault("Redis: restarted, polling", _restarted, _POLLED, rounds=3),
    Fault("Redis: restarted, web and workers", _restarted, _MANY),
    *(
        Fault(
            f"Redis: gone for {for_s} s{where}",
            partial(_gone, for_s=for_s),
            stage,
            rounds=1,
            sample=sample,
            patience_s=120,
        )
        for for_s, where, stage, sample in (
            (12, "", Stage(), 1),
            (60, "", Stage(), 0),
            (12, ", polling", _POLLED, 0),
            (60, ", polling", _POLLED, 0),
            (60, ", web and workers", _MANY, 0),
        )
    ),
    Fault("Redis: full, then not", _full, patience_s=120),
    Fault("Redis: full, then not, polling", _full, _POLLED, sample=0, patience_s=120),
    Fault("Redis: full, then not, web and workers", _full, _MANY, patience_s=120),
    *(
        Fault(f"Redis: {name}", partial(_disturbed, command=command))
        for name, command in (
            ("connections reset", "CLIENT KILL TYPE normal SKIPME yes"),
            ("scripts forgotten", "SCRIPT FLUSH"),
        )
    ),
)
