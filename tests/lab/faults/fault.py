"""A named fault, and the day of talk on which it strikes.

A strike injects the fault once and returns when it has happened. If the fault has an end, for
example a restarted server, the strike returns after that end. Other people talk meanwhile. A strike
whose moment does not come raises `MomentMissed` and is not counted.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.lab.faults.moments import MomentMissed
from tests.lab.faults.scene import Scene, Stage, open_scene
from tests.lab.faults.verdict import Allowance, Closing, Verdict, judge

Strike = Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and its day.

    It strikes `rounds` times, in the trials `sample` times (0: they skip it). In each
    round people write `texts` texts, half of them before the strike. At the end they write one more
    in each chat, which must be answered. If `texts` is 0, the strike itself lets people write.
    `closings` are the ends other than an answer that the fault may cause: in each round to `turns`
    turns, and also to the turns of the texts in `scene.hit`. After the last round no more faults
    happen, and the bots have `patience_s` to finish. `missing` names what this machine lacks to run
    the fault; then it is skipped.
    """

    name: str
    strike: Strike
    stage: Stage = field(default_factory=Stage)
    rounds: int = 3
    sample: int = 1
    texts: int = 8
    closings: frozenset[Closing] = frozenset()
    turns: int = 1
    patience_s: float = 100
    missing: str = ""


async def play(fault: Fault, folder: Path, random: Random) -> Verdict:
    """Run a fault's day in an empty folder and return the verdict.

    Raise `AssertionError` if a bot's log has a forbidden line or a bot does not exit with 0.
    """
    async with open_scene(fault.stage, folder, random) as scene:
        for scene.round in range(fault.rounds):
            await scene.talk(fault.texts // 2)
            talking = asyncio.create_task(scene.talk(fault.texts - fault.texts // 2))
            try:
                await fault.strike(scene)
                scene.struck += 1
            except MomentMissed as missed:
                scene.missed.add(str(missed))
                scene.heal()
            finally:
                await talking
        scene.heal()
        if fault.texts:
            said = len(scene.day.lines)
            await scene.day.say_goodbye()
            scene.safe.update(line.marker for line in scene.day.lines[said:])
        await scene.settle(fault.patience_s)
        for bot in scene.bots:
            assert not bot.is_running or await bot.stop() == 0
        verdict = await judge(scene, Allowance(fault.closings, fault.turns * fault.rounds))
        for bot in scene.bots if verdict.complaints else ():
            print("A bot of this day ended so:", *bot.raw[-80:], sep="\n")  # noqa: T201 - pytest shows it
        return verdict
