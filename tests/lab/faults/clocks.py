"""Faults of wall clocks: the clocks of the bots and of Redis jump by minutes and by hours.

They use Debian's `libfaketime`. Preloaded into a process, it adds the offset in `~/.faketimerc` to
the time of day. Like a real jump it does not change the clocks that measure durations.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import time

from tests.lab.faults.fault import Fault
from tests.lab.faults.moments import ASKING, BEING_SENT
from tests.lab.faults.scene import Scene, Stage
from tests.servers.bot_api import FloodWait

_LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
FAKED = {
    "LD_PRELOAD": str(_LIBRARY),
    "FAKETIME_CACHE_DURATION": "1",
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # for old C libraries: threads spin that wait for a lock
}
"""The offset is read once a second. Reading it for each time of day takes ten times as long."""
MISSING = "" if _LIBRARY else "libfaketime is not installed"

_MINUTES, _HOURS = 5 * 60, 3 * 3600
_FORWARD = (_MINUTES, _MINUTES + _HOURS)
_BACK = (-_MINUTES, -_MINUTES - _HOURS)
_FAR_BACK = (-_HOURS, -_HOURS - _MINUTES)
_THERE_AND_BACK = (_HOURS, 0)
_SEEN_S = 60
_FLOOD_WAIT_S = 21  # longer than a turn waits with its lease, so the turn is parked


async def _jump(scene: Scene, *, to_s: Sequence[float]) -> None:
    """Let the clocks jump while a part is being sent and other messages wait for a turn.

    A worker that takes the turn over may close it before the part is marked as sent. Then the part
    stays in the chat.
    """
    await BEING_SENT.provoke(scene)
    await scene.day.talk(2)
    await scene.note_doubts()
    await _set_clocks(scene, to_s[scene.round % len(to_s)])


async def _jump_at_a_death(scene: Scene, *, to_s: Sequence[float]) -> None:
    """Let the clocks jump right after a bot has died in the middle of turns."""
    [bot] = scene.bots
    await (ASKING, BEING_SENT)[scene.round % 2].provoke(scene)
    await bot.kill()
    scene.heal()
    async with scene.resuming():
        await _set_clocks(scene, to_s[scene.round % len(to_s)])
        await bot.start()


async def _jump_while_parked(scene: Scene, *, to_s: Sequence[float]) -> None:
    """Let the clocks jump while flood waits keep replies back, until one of them is parked."""
    scene.telegram.faults.add(FloodWait(_FLOOD_WAIT_S), method="sendMessage", times=None)
    await scene.talk(1)
    [bot] = scene.bots
    await bot.wait_for_log("turn parked")
    scene.heal()
    await _set_clocks(scene, to_s[scene.round % len(to_s)])


async def _set_clocks(scene: Scene, offset_s: float) -> None:
    """Set the time that the preloaded processes see, for all of them at once.

    They have read it when this returns: bots within two seconds, Redis only now and then.
    """
    home = Path(scene.rig.environment["HOME"])
    new = home / "new-clock"
    new.write_text(f"{offset_s:+.0f}")
    new.replace(home / ".faketimerc")
    await asyncio.sleep(2)
    async with asyncio.timeout(_SEEN_S):
        while scene.stage.redis_environment and abs(_redis_offset_s(scene) - offset_s) > 1:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)


def _redis_offset_s(scene: Scene) -> float:
    return int(scene.redis.ask("TIME").split(b"\r\n")[2]) - time()


_GATHERING = {"COALESCE_S": "0.5"}
_SLOW = {"LEASE_S": "8"}
"""A bot with a preloaded clock reads a file to learn the time, and needs long for everything."""
_BOT = Stage(settings=FAKED | _SLOW)
_REDIS = Stage(redis_environment=FAKED, settings=_GATHERING)
_REDIS_POLLED = Stage(intake="polling", redis_environment=FAKED)
_ALL = Stage(settings=FAKED | _SLOW | _GATHERING, redis_environment=FAKED)

# Those with 0 happen in the suite with another fault: forward and back again, back at a death.
FAULTS = tuple(
    Fault(
        name, partial(strike, to_s=to_s), stage, len(to_s), sample, patience_s=150, missing=MISSING
    )
    for name, strike, to_s, stage, sample in (
        ("clock of the bot: forward", _jump, _FORWARD, _BOT, 0),
        ("clock of the bot: back", _jump, _FAR_BACK, _BOT, 1),
        ("clock of Redis: forward", _jump, _FORWARD, _REDIS, 0),
        ("clock of Redis: back", _jump, _BACK, _REDIS, 0),
        ("clock of Redis: forward and back again", _jump, _THERE_AND_BACK, _REDIS, 2),
        ("clock of both: back", _jump, _FAR_BACK, _ALL, 1),
        ("clock of Redis: back, at a kill -9", _jump_at_a_death, _BACK, _REDIS, 1),
        (
            "clock of Redis: back, at a poller's kill -9",
            _jump_at_a_death,
            _FAR_BACK,
            _REDIS_POLLED,
            1,
        ),
        ("clock of the bot: forward, turns parked", _jump_while_parked, (_HOURS,), _BOT, 1),
        ("clock of Redis: back, turns parked", _jump_while_parked, (-_HOURS,), _REDIS, 1),
    )
)
