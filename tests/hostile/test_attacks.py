"""No input stops the bot for other people: each row of the table against a running bot.

The CPU time of the bot's event loop is measured, because other tests use the same cores.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import pytest

from tests.acceptance.rig import Rig
from tests.hostile.attacks import ATTACKS, Attack, Scene

_QUESTIONS = 4
_PAUSE_S = 0.5
"""Between two questions during an attack; without it, most of the work would be answers."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds of one clock; `held` are the lines that the watchdog logged during the attack."""

    quiet: float
    usual: float
    longest: float
    held: tuple[dict[str, Any], ...]


async def waits_during(
    attack: Attack, rig: Rig, clock: Callable[[], float] = time.monotonic
) -> Waits:
    """Start the bot, run the attack, and ask as another person until it ends."""
    await rig.start(max_concurrent_turns=4)
    mallory, chat = rig.person(1666, "Mallory")
    group = rig.telegram.group("Mallory's", [mallory], forum=attack.in_forum)

    async def wait() -> float:
        began = clock()
        await rig.ask(*rig.ben(), "Are you there?")
        return clock() - began

    for _ in range(2):  # some modules are loaded at first use
        await wait()
    quiet = median([await wait() for _ in range(_QUESTIONS)])
    seen = len(rig.bot.log)
    async with _running(attack, Scene(rig, mallory, chat, group)) as attacking:
        waits = [await wait()]
        while not attacking.done():
            waits.append(await wait())
            await asyncio.wait([attacking], timeout=_PAUSE_S)
    held = [line for line in rig.bot.log[seen:] if line["event"] == "event loop blocked"]
    return Waits(quiet, median(waits), max(waits), tuple(held))


@asynccontextmanager
async def _running(attack: Attack, scene: Scene) -> AsyncIterator[asyncio.Task[None]]:
    """Yield the attack as a task; raise what it raised."""
    async with asyncio.TaskGroup() as group:
        yield group.create_task(attack.run(scene))


MAX_S = 0.5
"""How much the loop may do for an attack while another person waits for an answer."""
MAX_BLOCKED_MS = 400
"""How long one step of the loop may take; before the fixes each attack took seconds."""


# Slow PDFs (F3) take long; `test_one_person` shows in less time that they leave slots for others.
SHORT = [attack for attack in ATTACKS if not attack.name.startswith("F3")]


@pytest.mark.parametrize("attack", SHORT, ids=[attack.name for attack in SHORT])
async def test_an_attack_does_no_harm_and_does_not_delay_others(attack: Attack, rig: Rig) -> None:
    waits = await waits_during(attack, rig, rig.bot.cpu_s)
    assert waits.usual <= 2 * waits.quiet + MAX_S
    assert [line for line in waits.held if line["cpu_ms"] >= MAX_BLOCKED_MS] == []
