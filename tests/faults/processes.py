"""Faults of the bots' own processes: killed at any step, told to stop, stopped for a while."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from bot.playground.bot_api import SlowAnswer
from bot.playground.model_api import Break
from tests.acceptance.rig import BotProcess
from tests.faults.fault import Fault
from tests.faults.moments import (
    ASKING,
    BEING_SENT,
    MOMENTS,
    SENDING,
    STUCK_LEARNING,
    TAKING_IN,
    USING_A_TOOL,
    Moment,
    is_for_learning,
)
from tests.faults.scene import MANY, POLLED_MANY, Scene, Stage

KILLS = 50
_PAUSED_S = 30
_LEARNED_S = 90
"""What a turn leaves to be learned falls due after 60 s for whoever is alive."""

_SENDING_S = 0.5
"""So no turn that runs when a process is told to stop is over before it hears that."""

_WORKING = (ASKING, USING_A_TOOL, SENDING, BEING_SENT)


async def _killed(scene: Scene) -> None:
    """Kill the process that is at one moment of its life after the other, and start it again."""
    moment = MOMENTS[scene.round % len(MOMENTS)]
    if moment.is_early:
        starting = scene.bots[scene.round % len(scene.bots)]
        await starting.stop()
    else:
        await scene.day.repeat_something()
    if moment.fault:
        method = "getMe" if moment.is_early else "sendMessage"
        scene.telegram.faults.add(moment.fault, method=method)
    coming = asyncio.create_task(moment.come(scene))
    await scene.talk(1, moment.wish)
    if moment.is_early:
        await starting.start(until="listening")
    there = await coming
    bot = starting if moment.is_early else there
    await bot.kill()
    scene.heal()
    async with scene.resuming():
        await bot.start()


async def _killed_while_learning(scene: Scene) -> None:
    """Kill a worker that learns, and let it stay dead until another has learned everything."""
    scene.model.faults.add(Break.HANG, when=is_for_learning)
    bot = await STUCK_LEARNING.bring_about(scene)
    await bot.kill()
    with _stood_in_for(scene, bot, "learned"):
        async with scene.resuming():
            assert await scene.settle(_LEARNED_S)
    await bot.start()


async def _told_to_stop(scene: Scene, *, at: Sequence[Moment]) -> None:
    """Stop whoever is there, as a platform does when it deploys; nothing is in doubt."""
    moment = at[scene.round % len(at)]
    scene.telegram.faults.add(SlowAnswer(_SENDING_S), method="sendMessage", times=None)
    bot = await moment.bring_about(scene)
    seen = len(bot.log)
    assert await bot.stop() == 0
    stopping = bot.log.index(await bot.wait_for_log("stopping", after=seen))
    closed = any(line["event"] == "turn closed" for line in bot.log[stopping:])
    assert closed or moment not in _WORKING, f"no turn ran while {moment.name}"
    scene.heal()
    await scene.talk(2)
    await bot.start()


async def _stopped_for_a_while(scene: Scene, *, at: Sequence[Moment]) -> None:
    """Stop whoever is there, with a lease, for much longer than that lasts; then let it go on.

    Meanwhile another process takes over.
    """
    moment = at[scene.round % len(at)]
    holder = await moment.bring_about(scene)
    holder.pause()
    await scene.note_doubts()
    with _stood_in_for(scene, holder, "update" if moment is TAKING_IN else "turn closed"):
        async with asyncio.TaskGroup() as group:
            group.create_task(scene.talk(6))
            await asyncio.sleep(_PAUSED_S)
    holder.resume()


@contextmanager
def _stood_in_for(scene: Scene, absent: BotProcess, event: str) -> Iterator[None]:
    """Fail when no other process reports an event within the block."""
    others = [(bot, len(bot.log)) for bot in scene.bots if bot is not absent]
    yield
    assert any(line["event"] == event for bot, seen in others for line in bot.log[seen:])


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
    *(
        Fault(
            f"kill -9 at any step, {name}",
            _killed,
            stage,
            rounds=len(MOMENTS),
            sample=sample,
            texts=4,
            patience_s=90,
        )
        for name, stage, sample in (
            ("web and workers", Stage(roles=MANY, learns=True), 5),
            ("pollers and workers", POLLED_MANY, 0),
        )
    ),
    Fault(
        "kill -9 of a worker that learns",
        _killed_while_learning,
        Stage(roles=MANY, learns=True),
        sample=0,
        patience_s=90,
    ),
    Fault("SIGTERM with turns running", partial(_told_to_stop, at=_WORKING), rounds=4, sample=4),
    *(
        Fault(
            f"SIGTERM of {name}",
            partial(_told_to_stop, at=(TAKING_IN, *_WORKING)),
            stage,
            rounds=5,
            sample=5,
        )
        for name, stage in (
            ("web and workers", Stage(roles=MANY)),
            ("pollers and workers", POLLED_MANY),
        )
    ),
    Fault(
        "lease holder stopped for 30 s",
        partial(_stopped_for_a_while, at=(BEING_SENT, ASKING)),
        Stage(roles=MANY),
        rounds=2,
    ),
    Fault(
        "poller stopped for 30 s",
        partial(_stopped_for_a_while, at=(TAKING_IN,)),
        POLLED_MANY,
        rounds=2,
    ),
)
