"""Faults of the bots' own processes: killed at any step, asked to stop, paused for a while."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from tests.acceptance.bot_process import BotProcess
from tests.lab.faults.fault import Fault
from tests.lab.faults.moments import (
    ACCEPTING,
    ASKING,
    BEING_SENT,
    IN_A_TURN,
    MOMENTS,
    SENDING,
    STUCK_LEARNING,
    USING_A_TOOL,
    Moment,
    is_for_learning,
)
from tests.lab.faults.scene import MANY, POLLED_MANY, Scene, Stage
from tests.servers.bot_api import Hang, SlowAnswer
from tests.servers.model_api import Break

_KILLS = 26  # kills in each of two days

_FIRST = -1
"""Kills begin with `learned` and go backwards: learning comes soon only as long as no learner has
died with a lease, and `recalling` comes only when something has been learned."""

_RECALLS = {"window_messages": 2}  # nothing is searched as long as the window shows all

_EARLY = IN_A_TURN.index(USING_A_TOOL)
_EARLY_FIRST = (*IN_A_TURN[_EARLY:], *IN_A_TURN[:_EARLY])
"""In the test suite one day has the later moments, and the other, which polls, the earlier ones."""

_LEARNED_S = 90  # longer than the 60 s after which another process learns what a dead one has left

_TAKEN_OVER_S = 60
_AGAIN_S = 0.1
_SENDING_S = 0.5  # so slow that no turn ends between the choice of a process and its SIGTERM

_APART = (("web and workers", Stage(roles=MANY)), ("pollers and workers", POLLED_MANY))

_WORKING = (ASKING, USING_A_TOOL, SENDING, BEING_SENT)


async def _killed(scene: Scene, *, at: Sequence[Moment]) -> None:
    """Kill the process that is at one moment, in the next round at the moment before."""
    await scene.day.repeat_something()
    bot = await at[(_FIRST - scene.round) % len(at)].provoke(scene)
    await bot.kill()
    scene.heal()
    async with scene.resuming():
        await bot.start()


async def _killed_while_starting(scene: Scene) -> None:
    """Kill a process right after its first `getMe`, and start it again; each round another one."""
    bot = scene.bots[scene.round % len(scene.bots)]
    await bot.stop()
    rule = scene.telegram.faults.add(Hang(1), method="getMe")
    await scene.talk(1)
    await bot.start(until="listening")
    await scene.telegram.wait_for(lambda: rule.left == 0)
    await bot.kill()
    await bot.start()


async def _killed_while_learning(scene: Scene) -> None:
    """Kill a worker that learns, and start it again when another worker has learned everything."""
    scene.model.faults.add(Break.HANG, when=is_for_learning)
    bot = await STUCK_LEARNING.provoke(scene)
    await bot.kill()
    async with _others_report(scene, bot, "learned"), scene.resuming():
        assert await scene.settle(_LEARNED_S)
    await bot.start()


async def _asked_to_stop(scene: Scene, *, at: Sequence[Moment]) -> None:
    """Stop the process at the moment with SIGTERM, as a deployment does; no part is in doubt."""
    moment = at[scene.round % len(at)]
    scene.telegram.faults.add(SlowAnswer(_SENDING_S), method="sendMessage", times=None)
    bot = await moment.provoke(scene)
    seen = len(bot.log)
    assert await bot.stop() == 0
    stopping = bot.log.index(await bot.wait_for_log("stopping", after=seen))
    closed = bot.lines("turn closed", after=stopping)
    assert closed or moment not in _WORKING, f"no turn ran while {moment.name}"
    scene.heal()
    await scene.talk(2)
    await bot.start()


async def _stopped_for_a_while(scene: Scene, *, for_s: float, at: Sequence[Moment]) -> None:
    """Pause the process that holds a lease until another process has taken over, then resume it.

    The pause takes at least `for_s`, longer than the lease.
    """
    moment = at[scene.round % len(at)]
    holder = await moment.provoke(scene)
    holder.pause()
    await scene.note_doubts()
    try:
        event = "update" if moment is ACCEPTING else "turn closed"
        async with _others_report(scene, holder, event), asyncio.TaskGroup() as group:
            group.create_task(scene.talk(6))
            await asyncio.sleep(for_s)
    finally:
        holder.resume()


@asynccontextmanager
async def _others_report(scene: Scene, absent: BotProcess, event: str) -> AsyncIterator[None]:
    """After the block, wait until another process has reported an event since it began."""
    others = [(bot, len(bot.log)) for bot in scene.bots if bot is not absent]
    yield
    async with asyncio.timeout(_TAKEN_OVER_S):
        while not any(bot.lines(event, after=seen) for bot, seen in others):  # noqa: ASYNC110 - one of several logs
            await asyncio.sleep(_AGAIN_S)


FAULTS = (
    *(
        Fault(
            f"kill -9 at any step{where}",
            partial(_killed, at=at),
            stage,
            rounds=rounds,
            sample=sample,
            texts=4,
            patience_s=150,
        )
        for where, stage, at, rounds, sample in (
            ("", Stage(learns=True, settings=_RECALLS), MOMENTS, _KILLS, len(MOMENTS) - _EARLY),
            (", polling", Stage("polling", settings=_RECALLS), _EARLY_FIRST, _KILLS, _EARLY),
            (", web and workers", Stage(roles=MANY, settings=_RECALLS), MOMENTS, len(MOMENTS), 5),
            (
                ", pollers and workers",
                replace(POLLED_MANY, settings=_RECALLS),
                MOMENTS,
                len(MOMENTS),
                0,
            ),
        )
    ),
    Fault("kill -9 while starting", _killed_while_starting, rounds=4, sample=4, texts=3),
    *(
        Fault(
            f"kill -9 while starting, {name}",
            _killed_while_starting,
            stage,
            rounds=len(stage.roles),
            sample=0,
            texts=4,
        )
        for name, stage in _APART
    ),
    Fault(
        "kill -9 of a worker that learns",
        _killed_while_learning,
        Stage(roles=MANY, learns=True),
        sample=0,
        patience_s=150,
    ),
    Fault("SIGTERM with turns running", partial(_asked_to_stop, at=_WORKING), rounds=4, sample=2),
    *(
        Fault(
            f"SIGTERM of {name}",
            partial(_asked_to_stop, at=(ACCEPTING, *_WORKING)),
            stage,
            rounds=5,
            sample=3,
        )
        for name, stage in _APART
    ),
    *(
        Fault(
            f"{name} stopped for {for_s} s",
            partial(_stopped_for_a_while, for_s=for_s, at=at),
            stage,
            rounds=2,
            sample=sample,
        )
        for name, at, stage in (
            ("lease holder", (BEING_SENT, ASKING), Stage(roles=MANY)),
            ("poller", (ACCEPTING,), POLLED_MANY),
        )
        for for_s, sample in ((6, 1), (30, 0))
    ),
)
