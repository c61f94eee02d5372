"""What a process reports while somebody watches: steps, errors, sizes, and no word of anybody."""

import asyncio
from functools import partial

import orjson
import pytest
import structlog

from bot.features.inspector.state import MAX_REPORT_BYTES, WATCHED, ProcessReports, report_of
from bot.model.call import CallReport
from bot.model.model_errors import ModelUnavailable
from bot.model.resilience import ModelCondition
from bot.runtime.logs import short_name
from bot.turn.observers import (
    AgentRan,
    Event,
    GaveUp,
    NotAnswered,
    PartSent,
    StepBegan,
    TurnEnded,
    TurnLog,
)
from memory.behaviors.context import AgentContext
from memory.memory import Memory
from memory.store.keys import Scope
from memory.store.tasks import end_tasks

CHAT = Scope.of_chat(1001)


class Process:
    """One process with a clock that stands still unless it is moved."""

    def __init__(self, memory: Memory) -> None:
        self.now = 100.0
        self.memory = memory
        self.name_of = partial(short_name, "42:made_up")
        self.live = TurnLog(self.name_of, lambda _: None, clock=lambda: self.now)
        self.name = self.name_of(CHAT)

    def observe(self, turn: str, *observed: Event) -> None:
        with structlog.contextvars.bound_contextvars(conversation=CHAT.tag, turn=turn):
            for each in observed:
                self.live.observe(each)

    def report(self, *conditions: ModelCondition) -> dict[str, list[dict[str, object]]]:
        found: dict[str, list[dict[str, object]]] = orjson.loads(
            report_of(self.live, "process", "worker", conditions, self.memory.capacity.samples)
        )
        return found


@pytest.fixture
def process(memory: Memory) -> Process:
    return Process(memory)


async def test_a_turn_under_way_is_shown_with_its_step_until_it_ends(process: Process) -> None:
    process.observe("7", StepBegan("answer"))
    process.now = 102
    process.observe("7", StepBegan("model"))
    [turn] = process.report()["turns"]
    named = {"conversation": process.name, "turn": "7", "step": "model"}
    assert turn == {**named, "began_at": 100, "since": 102}
    process.observe("7", TurnEnded("closed", 2))
    assert (process.report()["turns"], process.report()["errors"]) == ([], [])


async def test_an_error_is_shown_by_its_class_its_step_and_its_reference(process: Process) -> None:
    process.observe("7", StepBegan("model"), NotAnswered("ab12", "ModelUnavailable"))
    process.observe("7", StepBegan("delivery"), PartSent("sent"), PartSent("Forbidden"))
    process.observe("7", GaveUp("KeyError"), TurnEnded("StoreUnavailable", 1))
    seen = [(each["step"], each["error"], each["reference"]) for each in process.report()["errors"]]
    assert seen == [
        ("model", "ModelUnavailable", "ab12"),
        ("delivery", "Forbidden", "7"),
        ("delivery", "KeyError", "7"),
        ("delivery", "StoreUnavailable", "7"),
    ]


@pytest.mark.parametrize("outcome", ["Interrupted", "LeaseLost", "Parked", "CancelledError"])
async def test_a_turn_that_goes_on_elsewhere_is_no_error(process: Process, outcome: str) -> None:
    process.observe("7", StepBegan("model"), TurnEnded(outcome, 1))
    assert (process.report()["turns"], process.report()["errors"]) == ([], [])


async def test_a_failed_call_shows_the_class_of_its_error_and_no_text(process: Process) -> None:
    error = ModelUnavailable("the words of a zebra")
    process.live.observe(CallReport("internal", "secret-model", "first", 1, error=error))
    process.live.observe(CallReport("internal", "secret-model", "first", 1))
    [seen] = process.report()["errors"]
    assert (seen["step"], seen["error"]) == ("internal call, first model", "ModelUnavailable")
    assert "zebra" not in str(seen)


async def test_a_prompt_is_kept_as_numbers(process: Process, memory: Memory) -> None:
    context = await AgentContext.get_or_create({"chat_id": 1001}, memory.histories, now=1)
    context.sizes = {"system": 5, "window": 6}
    process.observe("7", AgentRan(context, "the words of a zebra", None, 1.5))
    [prompt] = process.report()["prompts"]
    assert (prompt["tokens"], prompt["seconds"]) == ({"system": 5, "window": 6}, 1.5)
    assert "zebra" not in f"{prompt} {process.live.runs}"


async def test_a_report_stays_short_however_much_happens(process: Process) -> None:
    for turn in range(1_000):
        process.observe(str(turn), StepBegan("delivery"), PartSent("Forbidden"))
    report = report_of(process.live, "process", "worker", (), process.memory.capacity.samples)
    assert (b'"running":1000' in report, len(report) < 16_000) == (True, True)


async def test_a_model_that_rests_is_shown_with_its_error(process: Process) -> None:
    condition = ModelCondition("learning", "OPENAI_MEMORY_MODEL", lambda: process.now)
    condition.answered()
    [model] = process.report(condition)["models"]
    assert (model["answered_at"], model["failing_since"], model["error"]) == (100, 0, "")
    condition.failed(ModelUnavailable("words"))
    [model] = process.report(condition)["models"]
    assert (model["failing_since"], model["error"]) == (100, "ModelUnavailable")


def test_a_conversation_has_one_name_that_only_its_bot_can_compute() -> None:
    name = partial(short_name, "42:made_up")
    assert name(CHAT) == name(CHAT) != name(Scope.of_chat(1002))
    assert name(CHAT) != short_name("43:made_up", CHAT)
    assert "1001" not in name(CHAT)


def reports_of(memory: Memory) -> ProcessReports:
    return ProcessReports(memory.store, memory.scopes.noted[WATCHED])


async def test_every_process_reports_once_somebody_watches(memory: Memory, other: Memory) -> None:
    written = asyncio.Event()

    def report() -> bytes:
        written.set()
        return b"of the other"

    writing = asyncio.create_task(reports_of(other).keep_writing(report))
    await other.scopes.drop_erased()
    assert await reports_of(memory).read() == []
    await reports_of(memory).watch()
    await other.scopes.drop_erased()
    await written.wait()
    while not (read := await reports_of(memory).read()):
        pass
    assert read == [b"of the other"]
    await end_tasks([writing])


async def test_without_a_watcher_a_process_sends_no_command(memory: Memory, other: Memory) -> None:
    writing = asyncio.create_task(reports_of(other).keep_writing(lambda: b"never"))
    before = memory.client.round_trips
    for _ in range(5):
        await asyncio.sleep(0)
    assert memory.client.round_trips == before
    await end_tasks([writing])


async def test_a_process_that_died_disappears(memory: Memory, other: Memory) -> None:
    reports, others = reports_of(memory), reports_of(other)
    await reports.write(b"lives")
    await others.write(b"died")
    assert sorted(await reports.read()) == [b"died", b"lives"]
    await memory.client.call("DEL", others.key(others.process))
    assert await reports.read() == [b"lives"]


async def test_a_report_expires_and_has_a_bound(memory: Memory) -> None:
    reports = reports_of(memory)
    await reports.write(b"short")
    key = reports.key(reports.process)
    assert 0 < await memory.client.call("PTTL", key) <= 6_000
    await reports.write(bytes(MAX_REPORT_BYTES + 1))
    assert await reports.read() == [b"short"]
