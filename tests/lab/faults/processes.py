"""Faults of the bots' own processes: killed at any step, told to stop, stopped for a while."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from tests.acceptance.rig import BotProcess
from tests.lab.faults.fault import Fault
from tests.lab.faults.moments import (
    ASKING,
    BEING_SENT,
    IN_A_TURN,
    MOMENTS,
    SENDING,
    STUCK_LEARNING,
    TAKING_IN,
    USING_A_TOOL,
    Moment,
    is_for_learning,
)
from tests.lab.faults.scene import MANY, POLLED_MANY, Scene, Stage
from tests.servers.bot_api import Hang, SlowAnswer
from tests.servers.model_api import Break

_KILLS = 26
"""In each of two days, which are played side by side."""

_FIRST = -2
"""From `LEARNING` it goes backwards: that is soon only while no learner has died with a claim, and
`recalling` comes when something has been learned."""

_LEARNED_S = 90
"""What a turn leaves to be learned falls due after 60 s for whoever is alive."""

_SENDING_S = 0.5
"""So no turn that runs when a process is told to stop is over before it hears that."""

_WORKING = (ASKING, USING_A_TOOL, SENDING, BEING_SENT)


async def _killed(scene: Scene, *, at: Sequence[Moment]) -> None:
    """Kill the process that is at one moment of its life, then at the one before."""
    await scene.day.repeat_something()
    bot = await at[(_FIRST - scene.round) % len(at)].bring_about(scene)
    await bot.kill()
    scene.heal()
    async with scene.resuming():
        await bot.start()


async def _killed_while_starting(scene: Scene) -> None:
    """Kill one process after the other when it has just asked who it is, and start it again."""
    bot = scene.bots[scene.round % len(scene.bots)]
    await bot.stop()
    rule = scene.telegram.faults.add(Hang(1), method="getMe")
    await scene.talk(1)
    await bot.start(until="listening")
    await scene.telegram.wait_for(lambda: rule.left == 0)
    await bot.kill()
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


async def _stopped_for_a_while(scene: Scene, *, for_s: float, at: Sequence[Moment]) -> None:
    """Stop whoever is there, with a lease, for longer than its 2 s; then let it go on.

    Meanwhile another process takes over.
    """
    moment = at[scene.round % len(at)]
    holder = await moment.bring_about(scene)
    holder.pause()
    await scene.note_doubts()
    with _stood_in_for(scene, holder, "update" if moment is TAKING_IN else "turn closed"):
        async with asyncio.TaskGroup() as group:
            group.create_task(scene.talk(6))
            await asyncio.sleep(for_s)
    holder.resume()


@contextmanager
def _stood_in_for(scene: Scene, absent: BotProcess, event: str) -> Iterator[None]:
    """Fail when no other process reports an event within the block."""
    others = [(bot, len(bot.log)) for bot in scene.bots if bot is not absent]
    yield
    assert any(line["event"] == event for bot, seen in others for line in bot.log[seen:])


FAULTS = (
    *(
        Fault(
            f"kill -9 at any step{where}",
            partial(_killed, at=at),
            stage,
            rounds=rounds,
            sample=sample,
            texts=4,
            patience_s=90,
        )
        for where, stage, at, rounds, sample in (
            ("", Stage(learns=True), MOMENTS, _KILLS, _KILLS // 2),
            (", polling", Stage(intake="polling"), IN_A_TURN, _KILLS, _KILLS // 2),
            (", web and workers", Stage(roles=MANY), MOMENTS, len(MOMENTS), 8),
            (", pollers and workers", POLLED_MANY, MOMENTS, len(MOMENTS), 0),
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
        for name, stage in (
            ("web and workers", Stage(roles=MANY)),
            ("pollers and workers", POLLED_MANY),
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
            ("poller", (TAKING_IN,), POLLED_MANY),
        )
        for for_s, sample in ((6, 1), (30, 0))
    ),
)
