"""Every fault's day keeps every promise; `python -m tests.lab.faults` runs longer days."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.lab.faults.catalogue import FAULTS
from tests.lab.faults.fault import Fault, play

pytestmark = pytest.mark.timeout(300)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.sample], ids=lambda fault: fault.name
)
async def test_nothing_is_lost_doubled_or_out_of_order(fault: Fault, tmp_path: Path) -> None:
    if fault.missing:
        pytest.skip(fault.missing)
    verdict = await play(replace(fault, rounds=fault.sample), tmp_path, Random(1))
    assert verdict.complaints == ()
