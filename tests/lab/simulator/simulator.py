"""Runs schedules one after the other in simulated time. The same seed gives the same outcome."""

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import structlog

from memory.store.store import script_names, source
from memory.text.tokens import TokenCounter
from tests.lab.simulator.audit_base import Violated
from tests.lab.simulator.clock import Time, simulated
from tests.lab.simulator.loop import VirtualLoop
from tests.lab.simulator.process import Died, adopt
from tests.lab.simulator.schedule import Protocol, Schedule, SharedParts
from tests.lab.simulator.store.lua import Lua
from tests.lab.simulator.turn import MadeUpBug

_EXPECTED = (MadeUpBug, Died, Violated, asyncio.CancelledError)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a schedule ended; `violation` is empty if every promise was kept."""

    seed: int
    violation: str
    counts: Counter[str]
    trace: tuple[str, ...] = ()


class Simulator:
    """Simulates one protocol, the product's own or a broken one."""

    def __init__(self, time: Time, tokens: TokenCounter, protocol: Protocol) -> None:
        self._time = time
        texts = {
            source: (name, protocol.lua.get(name, source).encode())
            for name, source in script_sources().items()
        }
        self._shared = SharedParts(protocol, tokens, Lua(), texts)

    def run(self, seed: int, *, traced: bool = False) -> Outcome:
        """Run one schedule; with `traced`, keep a line for each thing that happens."""
        trace: list[str] | None = [] if traced else None
        loop = VirtualLoop(adopt)
        loop.set_exception_handler(lambda *_: None)  # the auditor reports what matters
        self._time.follow(loop, seed)
        schedule = Schedule(self._shared, loop, seed, trace)
        auditor = schedule.auditor

        def unexpected(error: BaseException | None, event: str) -> None:
            if not isinstance(error, _EXPECTED) and not auditor.violation:
                auditor.violation = f"every error is expected: {event}: {error!r}"

        with _report_logged_errors(unexpected):
            loop.run_until_complete(schedule.run())
        loop.close()
        counts = schedule.counts + auditor.records.counts
        counts["steps"] = auditor.step
        return Outcome(seed, auditor.violation, counts, tuple(trace or ()))


@contextmanager
def simulator(
    protocol: Protocol | None = None, tokens: TokenCounter | None = None
) -> Iterator[Simulator]:
    """Yield a simulator; inside the block the product's time is simulated."""
    tokens = tokens or asyncio.run(TokenCounter.load())
    gc.freeze()  # the collector need not visit what all schedules share
    try:
        with simulated() as time:
            yield Simulator(time, tokens, protocol or Protocol())
    finally:
        gc.unfreeze()


def script_sources() -> dict[str, str]:
    """Return the texts of all scripts by their names."""
    return {name: source(name) for name in script_names()}


@contextmanager
def _report_logged_errors(report: Callable[[BaseException | None, str], None]) -> Iterator[None]:
    """Drop all log lines, but report those with a traceback."""

    def drop(_: Any, __: str, event: MutableMapping[str, Any]) -> NoReturn:
        # The logger calls its method `error` for both `error` and `exception`.
        traced = event.get("exc_info")
        if traced:
            error = traced if isinstance(traced, BaseException) else sys.exc_info()[1]
            report(error, str(event["event"]))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[drop], wrapper_class=structlog.make_filtering_bound_logger(40))
    try:
        yield
    finally:
        structlog.configure(**before)
