"""No input stops the bot for other people: each row of the table against a running bot.

The CPU time of the bot's event loop is measured, because other tests use the same cores.
"""

import asyncio
from collections.abc import Sequence
from statistics import median

import pytest

from tests.acceptance.rig import Rig
from tests.hostile.attacks import FILES, TEXTS, Attack, Scene

_QUESTIONS = 4
_PAUSE_S = 0.5
"""Between two questions during an attack; without it, most of the work would be answers."""
MAX_S = 0.5  # how much the loop may do for an attack while another person waits for an answer
MAX_BLOCKED_MS = 400
"""How long one step of the loop may take."""


@pytest.mark.trial
@pytest.mark.parametrize("attacks", [*([each] for each in FILES), TEXTS], ids=lambda a: a[0].name)
async def test_an_attack_does_no_harm_and_does_not_delay_others(
    attacks: Sequence[Attack], rig: Rig
) -> None:
    """Files have a bot each, because the largest of its memory so far is compared."""
    await rig.start(slots=4, inspector_token="a-token-of-the-operator")

    async def wait() -> float:
        """Ask as another person; return the CPU time of the loop until the answer."""
        began = rig.bot.cpu_s()
        await rig.ask(*rig.ben(), "Are you there?")
        return rig.bot.cpu_s() - began

    for _ in range(2):  # some modules are loaded at first use
        await wait()
    quiet = median([await wait() for _ in range(_QUESTIONS)])
    for number, attack in enumerate(attacks):
        mallory, chat = rig.person(1666 + number, "Mallory")
        group = rig.telegram.group("Mallory's", [mallory])
        seen = len(rig.bot.log)
        async with asyncio.TaskGroup() as tasks:
            attacking = tasks.create_task(attack.run(Scene(rig, mallory, chat, group)))
            waits = [await wait()]
            while not attacking.done():
                waits.append(await wait())
                await asyncio.wait([attacking], timeout=_PAUSE_S)
        assert median(waits) <= 2 * quiet + MAX_S, attack.name
        held = rig.bot.lines("event loop blocked", after=seen)
        assert [line for line in held if line["cpu_ms"] >= MAX_BLOCKED_MS] == [], attack.name
