"""No input stops the bot for other people: each row of the table against a running bot.

The CPU time of the bot's event loop is measured, because other tests use the same cores.
"""

import pytest

from tests.acceptance.rig import Rig
from tests.hostile.attacks import ATTACKS, Attack
from tests.hostile.waits import waits_during

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
