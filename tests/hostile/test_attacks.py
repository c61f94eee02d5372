"""No input stops the bot for other people: each row of the table against a running bot."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig, open_rig
from tests.hostile.attacks import ATTACKS, Attack
from tests.hostile.waits import waits_during

BUSY_MACHINE_S = 0.5
"""Other tests on the same two cores may add this to any wait."""
MAX_ATTACKED_MS = 400
"""How long the attacked place may block the loop; before the fixes each blocked it for seconds."""
MAX_MS = 1_000
"""How long any other place may, because other tests on the same cores slow the process down."""


@pytest.fixture
async def rig(launcher: None, valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:  # noqa: ARG001
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        yield opened


# Slow PDFs (F3) take 20 s; `test_one_person` shows in less time that they leave slots for others.
SHORT = [attack for attack in ATTACKS if not attack.name.startswith("F3")]


@pytest.mark.parametrize("attack", SHORT, ids=[attack.name for attack in SHORT])
async def test_an_attack_does_no_harm_and_does_not_delay_others(attack: Attack, rig: Rig) -> None:
    waits = await waits_during(attack, rig)

    assert waits.usual <= 2 * waits.quiet + BUSY_MACHINE_S
    for line in waits.held:
        attacked = any(place in line["frames"] for place in attack.places)
        assert line["ms"] < (MAX_ATTACKED_MS if attacked else MAX_MS), line
