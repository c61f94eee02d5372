"""A named fault, and the day on which it strikes.

A strike injects the fault once and returns when it has happened, and when it is over if it has an
end, as a server that is started again. Other people talk meanwhile. One whose moment does not come
raises `MomentMissed` and is not counted.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.lab.faults.evidence import Closing
from tests.lab.faults.moments import MomentMissed
from tests.lab.faults.scene import Scene, Stage, open_scene
from tests.lab.faults.verdict import Allowance, Verdict, judge

Strike = Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and what its day is like.

    It strikes `rounds` times, in the suite `sample` times (0: the suite leaves it out); in each
    round `texts` texts are said, half of them before it strikes, and in the end one more in each
    chat, which must be answered. Without `texts` the strike has everything said itself. `closings`
    are the ends beside an answer that it may cause, each time to so many `turns`, and to those of
    the texts in `scene.hit`. After the last round all is well and the bots have `patience_s` to
    become quiet. `lacks` says what this machine has not, without which the fault cannot be played;
    it is skipped then.
    """

    name: str
    strike: Strike
    stage: Stage = field(default_factory=Stage)
    rounds: int = 3
    sample: int = 1
    texts: int = 8
    closings: frozenset[Closing] = frozenset()
    turns: int = 1
    patience_s: float = 30
    lacks: str = ""


async def play(fault: Fault, folder: Path, random: Random) -> Verdict:
    """Play a fault's day in an empty folder and return the verdict.

    Raise `AssertionError` when a bot's log shows what it must not, or a bot does not end well.
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
        return await judge(scene, Allowance(fault.closings, fault.turns * fault.rounds))
