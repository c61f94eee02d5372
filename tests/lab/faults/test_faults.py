"""Every fault's day keeps every promise; `python -m tests.lab.faults` runs longer days.

Faults that need the same stage and allow the same ends share a day here, because a day costs more
than a fault. To find the fault that broke a promise, run it alone: `--only` and a part of its name.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from random import Random

import pytest

from tests.lab.faults.catalogue import FAULTS
from tests.lab.faults.fault import Fault, play
from tests.lab.faults.scene import Scene

TOGETHER = 5
"""Faults in one day. More would leave the other test workers waiting for the longest day."""

TEXTS = 4  # texts that people write in each round of a shared day


def days() -> Iterator[Fault]:
    """Yield the faults with more than one round as they are, and the others in shared days."""
    shared = defaultdict[object, list[Fault]](list)
    for fault in FAULTS:
        if fault.sample == 1 and not fault.missing:
            needs = (str(fault.stage), fault.closings, fault.turns, fault.patience_s)
            shared[needs].append(fault)
        elif fault.sample:
            yield replace(fault, rounds=fault.sample)
    for faults in shared.values():
        count = ceil(len(faults) / TOGETHER)
        # Neighbors go to different days: a bot that was refused vectors does not ask again at once.
        yield from (in_one_day(faults[first::count]) for first in range(count))


def in_one_day(faults: Sequence[Fault]) -> Fault:
    """Return a fault that strikes as each of these, one after the other."""

    async def strike(scene: Scene) -> None:
        fault, scene.round = faults[scene.round], 0
        await fault.strike(scene)

    name = "; ".join(fault.name for fault in faults)
    return replace(faults[0], name=name, strike=strike, rounds=len(faults), texts=TEXTS)


@pytest.mark.trial
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", [*days()], ids=lambda fault: fault.name)
async def test_nothing_is_lost_doubled_or_out_of_order(fault: Fault, tmp_path: Path) -> None:
    if fault.missing:
        pytest.skip(fault.missing)
    verdict = await play(fault, tmp_path, Random(1))
    assert verdict.complaints == (), "\n".join(verdict.complaints)
