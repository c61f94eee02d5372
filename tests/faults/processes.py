"""Faults of the bots' own processes: killed at any step, told to stop, stopped for a while."""

import asyncio

from tests.acceptance.rig import BotProcess
from tests.faults.fault import Fault
from tests.faults.moments import (
    ASKING,
    BEING_SENT,
    MOMENTS,
    SENDING,
    USING_A_TOOL,
    Moment,
)
from tests.faults.scene import MANY, Scene, Stage

KILLS = 50
_PAUSED_S = 30


async def _killed(scene: Scene) -> None:
    """Kill the only process at one moment of its life after the other."""
    await _kill(scene, scene.bots[0], MOMENTS[scene.round % len(MOMENTS)])


async def _one_of_many_killed(scene: Scene) -> None:
    """Kill the web process and the workers by turns, whatever they are at."""
    victim = scene.bots[scene.round % len(scene.bots)]
    await _kill(scene, victim, scene.random.choice(MOMENTS))


async def _kill(scene: Scene, bot: BotProcess, moment: Moment) -> None:
    """Kill a bot at its moment and start it again."""
    if moment.is_early:
        await bot.stop()
    else:
        await scene.day.repeat_something()
    if moment.fault:
        method = "getMe" if moment.is_early else "sendMessage"
        scene.telegram.faults.add(moment.fault, method=method)
    coming = asyncio.create_task(moment.come(scene))
    await scene.talk(1, moment.wish)
    if moment.is_early:
        await bot.start(until="listening")
    await coming
    await bot.kill()
    scene.heal()
    async with scene.resuming():
        await bot.start()


async def _told_to_stop(scene: Scene) -> None:
    """Stop it with turns running, as a platform does when it deploys; nothing is in doubt."""
    moment = (ASKING, USING_A_TOOL, SENDING, BEING_SENT)[scene.round % 4]
    await moment.bring_about(scene)
    bot = scene.bots[scene.round % len(scene.bots)]
    assert await bot.stop() == 0
    await scene.talk(2)
    await bot.start()


async def _stopped_for_a_while(scene: Scene) -> None:
    """Stop whoever holds a lease for much longer than that lasts, and let it go on.

    Meanwhile another process takes over.
    """
    _, holder, heir = scene.bots
    await heir.stop()
    await (BEING_SENT, ASKING)[scene.round % 2].bring_about(scene)
    holder.pause()
    await scene.note_doubts()
    await heir.start()
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.talk(6))
        await asyncio.sleep(_PAUSED_S)
    holder.resume()


FAULTS = (
    Fault(
        "kill -9 at any step",
        _killed,
        Stage(learns=True),
        rounds=KILLS,
        sample=KILLS,
        texts=3,
        patience_s=90,
    ),
    Fault("kill -9 of web and workers", _one_of_many_killed, Stage(roles=MANY), rounds=6),
    Fault("SIGTERM with turns running", _told_to_stop, rounds=4),
    Fault("SIGTERM of web and workers", _told_to_stop, Stage(roles=MANY)),
    Fault("lease holder stopped for 30 s", _stopped_for_a_while, Stage(roles=MANY), rounds=2),
)
