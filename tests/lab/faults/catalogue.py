"""All faults, file by file."""

from tests.lab.faults import (
    announcing,
    clocks,
    processes,
    remembering,
    revising,
    store,
    streaming,
    wire_model,
    wire_telegram,
)

FAULTS = (
    *processes.FAULTS,
    *streaming.FAULTS,
    *revising.FAULTS,
    *remembering.FAULTS,
    *announcing.FAULTS,
    *store.FAULTS,
    *clocks.FAULTS,
    *wire_telegram.FAULTS,
    *wire_model.FAULTS,
)
