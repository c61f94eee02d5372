"""The protocol keeps its promises in a sample of schedules, and broken protocols are found.

For many schedules: `python -m tests.lab.simulator --schedules 100000`.
"""

import os
import subprocess
import sys

import pytest

pytest.importorskip("lupa", reason="the simulator runs the protocol's Lua in lupa")

from bot.telegram.updates import IncomingMessage, to_bytes
from memory.queue.mailbox import Entry
from memory.store.keys import Keys
from memory.text.tokens import TokenCounter
from tests.lab.simulator.audit_store import StoreAuditor
from tests.lab.simulator.mutants import MUTANTS, Mutant
from tests.lab.simulator.people import ANN
from tests.lab.simulator.records import AcceptedUpdate
from tests.lab.simulator.schedule import Protocol, simulator
from tests.lab.simulator.store.keyspace import Keyspace

SAMPLE = 60
EDITED = 219  # a waiting message is edited, and the reply to its new words is sent
REMINDING = 10
MAX_SCHEDULES = 1000
"""Every mutant is found within so many schedules from its `since`, most within twenty."""


def test_a_sample_of_schedules_keeps_every_promise(tokens: TokenCounter) -> None:
    with simulator(tokens=tokens) as simulated:
        outcomes = [simulated.run(seed) for seed in (*range(SAMPLE), EDITED)]
    assert [(each.seed, each.violation) for each in outcomes if each.violation] == []


def test_a_sample_of_schedules_with_reminders_and_tasks_keeps_every_promise(
    tokens: TokenCounter,
) -> None:
    with simulator(Protocol(reminds=True), tokens) as simulated:
        outcomes = [simulated.run(seed) for seed in range(REMINDING)]
    assert [(each.seed, each.violation) for each in outcomes if each.violation] == []
    for what in ("reminders sent", "tasks"):
        assert sum(each.counts[what] for each in outcomes) >= REMINDING / 2, what


def test_the_auditor_knows_a_late_edit_by_its_own_update() -> None:
    """An entry that asks several messages again names the newest edit, also after an older one."""
    auditor = StoreAuditor(Keyspace(lambda: 0), Keys(1), None)
    auditor.records.updates[8] = AcceptedUpdate(
        8, "c:7:0", 7, 0, is_text=False, arrived_ms=0, may_be_silent=True, words=frozenset()
    )
    body = to_bytes(IncomingMessage(8, 7, 0, False, 1, 0, ANN, "text", "w8"))  # noqa: FBT003
    member = Entry(8, 7, is_alone=True, body=body).to_member()
    for edit in (4, 7):
        args = [b'{"update_id":%d}' % edit, member, member]
        auditor.after("A1", "edit_entry", [b"{c:7:0}:meta"], args, b"edited")
    assert auditor.records.edits == {4, 7}


@pytest.mark.trial
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_a_broken_protocol_is_found(mutant: Mutant, tokens: TokenCounter) -> None:
    with simulator(mutant.protocol(), tokens) as simulated:
        seeds = range(mutant.since, mutant.since + MAX_SCHEDULES)
        found = (simulated.run(seed).violation for seed in seeds)
        assert any(violation.startswith(mutant.promise) for violation in found)


@pytest.mark.trial
def test_the_same_seed_gives_the_same_schedule_in_any_process(tokens: TokenCounter) -> None:
    """The other process hashes strings differently, and so orders its sets differently."""
    with simulator(tokens=tokens) as simulated:
        here = simulated.run(5, traced=True).trace
    other = subprocess.run(
        [sys.executable, "-m", "tests.lab.simulator", "--trace", "--seed", "5"],
        env=os.environ | {"PYTHONHASHSEED": "2"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert other.stdout.partition(":\n\n")[2] == "\n".join([*here, ""])
    assert len(here) > 50
