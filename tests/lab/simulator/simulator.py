"""Runs schedules one after the other in simulated time; the same seed gives the same outcome."""

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import structlog

from memory.store.client import RedisClient
from memory.store.scripts import Scripts
from memory.text.tokens import TokenCounter
from tests.lab.simulator.clock import Time, simulated
from tests.lab.simulator.loop import VirtualLoop
from tests.lab.simulator.process import Died, adopt
from tests.lab.simulator.schedule import Lasting, Protocol, Schedule
from tests.lab.simulator.store.lua import Lua
from tests.lab.simulator.turn import MadeUpBug, remembered_sentences
from tests.lab.simulator.witness import Violated

_EXPECTED = (MadeUpBug, Died, Violated, asyncio.CancelledError)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a schedule ended; `violation` is empty when every promise was kept."""

    seed: int
    violation: str
    counts: Counter[str]
    trace: tuple[str, ...] = ()


class Simulator:
    """Simulates one protocol."""

    def __init__(self, time: Time, tokens: TokenCounter, protocol: Protocol) -> None:
        self._time = time
        texts = {
            source: (name, protocol.lua.get(name, source).encode())
            for name, source in script_sources().items()
        }
        self._lasting = Lasting(protocol, tokens, Lua(), remembered_sentences(), texts)

    def run(self, seed: int, *, traced: bool = False) -> Outcome:
        """Run one schedule."""
        trace: list[str] | None = [] if traced else None
        loop = VirtualLoop(adopt)
        loop.set_exception_handler(lambda *_: None)  # the auditor knows what matters
        self._time.follow(loop, seed)
        schedule = Schedule(self._lasting, loop, seed, trace)
        auditor = schedule.auditor

        def unexpected(error: BaseException | None, event: str) -> None:
            if not isinstance(error, _EXPECTED) and not auditor.violation:
                auditor.violation = f"no error is unforeseen: {event}: {error!r}"

        with _errors_told_to(unexpected):
            loop.run_until_complete(schedule.run())
        loop.close()
        counts = schedule.counts + auditor.ledger.counts
        counts["steps"] = auditor.step
        return Outcome(seed, auditor.violation, counts, tuple(trace or ()))


@contextmanager
def simulator(
    protocol: Protocol | None = None, tokens: TokenCounter | None = None
) -> Iterator[Simulator]:
    """Give a simulator while the block lasts, in which the product's time is simulated."""
    tokens = tokens or asyncio.run(TokenCounter.load())
    gc.freeze()  # what stays for all schedules need not be looked through in each
    try:
        with simulated() as time:
            yield Simulator(time, tokens, protocol or Protocol())
    finally:
        gc.unfreeze()


def script_sources() -> dict[str, str]:
    """Return the text of every script by its name."""
    return cast(dict[str, str], Scripts(cast(RedisClient, _Texts()))._scripts)


class _Texts:
    """Stands for a client where only the texts of scripts are wanted."""

    def script(self, source: str) -> str:
        return source


@contextmanager
def _errors_told_to(tell: Callable[[BaseException | None, str], None]) -> Iterator[None]:
    """Let log lines go nowhere, but errors with a traceback be told."""

    def hear(_: Any, __: str, event: MutableMapping[str, Any]) -> NoReturn:
        # The logger calls its method `error` for both `error` and `exception`.
        traced = event.get("exc_info")
        if traced:
            error = traced if isinstance(traced, BaseException) else sys.exc_info()[1]
            tell(error, str(event["event"]))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[hear], wrapper_class=structlog.make_filtering_bound_logger(40))
    try:
        yield
    finally:
        structlog.configure(**before)
