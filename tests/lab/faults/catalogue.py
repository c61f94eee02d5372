"""All faults, file by file."""

from tests.lab.faults import (
    announcing,
    answering,
    clocks,
    processes,
    remembering,
    store,
    wire_model,
    wire_telegram,
)

FAULTS = (
    *processes.FAULTS,
    *answering.FAULTS,
    *remembering.FAULTS,
    *announcing.FAULTS,
    *store.FAULTS,
    *clocks.FAULTS,
    *wire_telegram.FAULTS,
    *wire_model.FAULTS,
)
