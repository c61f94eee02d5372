"""What one process knows of its work: turns under way, last errors, sizes of prompts, models.

Each process writes this as its report, but only while an operator watches. It observes turns and
calls. It keeps names of steps and errors, times and numbers: no text, no id of a person or chat. A
conversation is named by a hash that only this bot's token can make.
"""

import asyncio
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import NoReturn

import orjson
import structlog

from bot.model.call import CallReport
from bot.model.resilience import ModelCondition
from bot.turn.observers import (
    AgentRan,
    Event,
    GaveUp,
    NotAnswered,
    PartSent,
    Step,
    StepBegan,
    TurnEnded,
)
from memory.limits.capacity import FillLevel
from memory.store.errors import StoreError
from memory.store.keys import Scope
from memory.store.store import Store

log = structlog.get_logger(__name__)

WATCHED = "watched"
"""The topic of notes that say: an operator watches."""

WATCHED_S = 15.0
"""How long every process goes on reporting after each look."""
_EVERY_S = 2.0
_EXPIRES_MS = 6_000
_REPORTERS_S = 60
_MAX_REPORTERS = 64
MAX_REPORT_BYTES = 32_768

_MAX_ERRORS = 20
_MAX_PROMPTS = 20
_MAX_LISTED = 40
_NO_ERROR = ("closed", "CancelledError", "Interrupted", "LeaseLost", "Parked")
"""Outcomes that are not errors: the turn ended as it should, or goes on elsewhere."""


@dataclass(frozen=True, slots=True)
class RunningTurn:
    """A turn under way, which began at `began_at` and its step at `since` (Unix seconds)."""

    conversation: str
    turn: str
    step: Step
    began_at: float
    since: float


@dataclass(frozen=True, slots=True)
class SeenError:
    """An error by the name of its class; both the person and the log have the `reference`."""

    at: float
    step: str
    error: str
    reference: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class PromptSizes:
    """Tokens of the last prompt of a run by part; `seconds` is how long the whole run took."""

    at: float
    conversation: str
    seconds: float
    tool_steps: int
    tokens: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """What one process reports; `capacity` has samples of (Unix seconds, bytes used, limit)."""

    process: str
    duty: str
    started_at: float
    running: int
    turns: tuple[RunningTurn, ...]
    errors: tuple[SeenError, ...]
    prompts: tuple[PromptSizes, ...]
    models: tuple[Mapping[str, object], ...]  # how well each answers; see `_state_of`
    capacity: tuple[tuple[float, int, int], ...]


class TurnLog:
    """Observes the turns and model calls of one process; `name_of` names conversations."""

    def __init__(
        self, name_of: Callable[[Scope], str], clock: Callable[[], float] = time.time
    ) -> None:
        self._name_of = name_of
        self._clock = clock
        self._started_at = clock()
        self._running: dict[tuple[str, str], RunningTurn] = {}
        self._errors: deque[SeenError] = deque(maxlen=_MAX_ERRORS)
        self._prompts: deque[PromptSizes] = deque(maxlen=_MAX_PROMPTS)

    def observe(self, event: Event) -> None:
        """Note a step of a turn, or a call to a model that failed."""
        fields = structlog.contextvars.get_contextvars()
        turn, tag = str(fields.get("turn", "")), str(fields.get("conversation", ""))
        match event:
            case StepBegan():
                now = self._clock()
                known = self._running.get((tag, turn))
                if known is None or event.step == "answer":
                    known = RunningTurn(self._named(tag), turn, event.step, now, now)
                self._running[tag, turn] = replace(known, step=event.step, since=now)
            case NotAnswered():
                self._note(tag, turn, event.error, event.reference)
            case GaveUp():
                self._note(tag, turn, event.error, turn)
            case PartSent() if event.outcome != "sent":
                self._note(tag, turn, event.outcome, turn)
            case AgentRan():
                self._prompts.append(
                    PromptSizes(
                        at=self._clock(),
                        conversation=self._named(tag),
                        seconds=event.seconds,
                        tool_steps=len(event.context.completed_steps),
                        tokens=dict(event.context.sizes),
                    )
                )
            case TurnEnded():
                if event.outcome not in _NO_ERROR:
                    self._note(tag, turn, event.outcome, turn)
                self._running.pop((tag, turn), None)
            case CallReport() if event.error is not None and event.outcome not in _NO_ERROR:
                step = f"{event.kind} call, {event.which} model"
                self._note(tag, turn, event.outcome, "", step)

    def report(
        self,
        process: str,
        duty: str,
        conditions: Sequence[ModelCondition],
        levels: Iterable[tuple[float, FillLevel]],
    ) -> bytes:
        """Return the `ProcessReport` of this process as JSON, with its oldest turns."""
        turns = sorted(self._running.values(), key=lambda turn: turn.began_at)
        report = ProcessReport(
            process=process,
            duty=duty,
            started_at=self._started_at,
            running=len(turns),
            turns=tuple(turns[:_MAX_LISTED]),
            errors=tuple(self._errors),
            prompts=tuple(self._prompts),
            models=tuple(map(_state_of, conditions)),
            capacity=tuple((at, level.used, level.limit) for at, level in levels),
        )
        return orjson.dumps(report)

    def _note(self, tag: str, turn: str, error: str, reference: str, step: str = "") -> None:
        running = self._running.get((tag, turn))
        step = step or (running.step if running else "")
        self._errors.append(SeenError(self._clock(), step, error, reference, self._named(tag)))

    def _named(self, tag: str) -> str:
        return self._name_of(Scope(tag)) if tag else ""


class ProcessReports:
    """Writes the report of this process, and reads those of all.

    `watched` is set when an operator watches.
    """

    def __init__(self, store: Store, watched: asyncio.Event) -> None:
        self.process = f"{socket.gethostname()[:24]}-{os.getpid()}-{token_hex(2)}"
        self._store = store
        self._reporters = store.keys.prefix + "reporters"
        self._watched = watched

    def key(self, process: str) -> str:
        """Name the report of one process."""
        return f"{self._store.keys.prefix}report:{process}"

    async def watch(self) -> None:
        """Have every process report for the next seconds."""
        await self._store.note(WATCHED)
        self._watched.set()

    async def keep_writing(self, report: Callable[[], bytes]) -> NoReturn:
        """Write what `report` returns again and again while somebody watches, until cancelled."""
        loop = asyncio.get_running_loop()
        until = 0.0
        while True:
            if loop.time() > until:
                await self._watched.wait()
            if self._watched.is_set():
                self._watched.clear()
                until = loop.time() + WATCHED_S
            with suppress(StoreError):
                await self.write(report())
            await asyncio.sleep(_EVERY_S)

    async def write(self, report: bytes) -> None:
        """Write a report; one that is too long is left out. Raise `StoreError`."""
        if len(report) > MAX_REPORT_BYTES:
            log.warning("report too long", nbytes=len(report))
            return
        await self._store.client.pipeline(
            [
                ("SET", self.key(self.process), report, "PX", _EXPIRES_MS),
                ("SADD", self._reporters, self.process),
                ("EXPIRE", self._reporters, _REPORTERS_S),
            ]
        )

    async def read(self) -> list[bytes]:
        """Return the reports of the processes that live, in the order of their names."""
        names = await self._store.client.call("SMEMBERS", self._reporters)
        names = sorted(name.decode() for name in names)[:_MAX_REPORTERS]
        if not names:
            return []
        reports = await self._store.client.pipeline([("GET", self.key(name)) for name in names])
        return [report for report in reports if report is not None]


def _state_of(condition: ModelCondition) -> dict[str, object]:
    return {
        "part": condition.part,
        "answered_at": condition.answered_at,  # Unix seconds, 0 for never; so is the next one
        "failing_since": condition.failing_since,
        "error": type(condition.error).__name__ if condition.failing_since else "",
        "rests_s": condition.breaker.rests_s if condition.breaker.is_open else 0.0,
    }
