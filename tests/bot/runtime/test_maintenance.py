"""One process sweeps for all, and a process that was without Redis sweeps everything once."""

import asyncio
import time

import orjson
import pytest
from structlog.testing import capture_logs

from bot.commands.erasing import Receipts
from bot.runtime.background_learner import BackgroundLearner
from bot.runtime.maintenance import Maintenance, repeat, watch_clock
from bot.telegram.chat import SHORT_WAIT_S
from bot.telegram.errors import (
    Blocked,
    ChatMigrated,
    FloodWait,
    OutcomeUnknown,
    Refused,
    TelegramError,
    Unreachable,
)
from memory.erasure.jobs import FinishedJob, Job
from memory.learning.learner import LearningRound
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.scopes.changes import Receipt
from memory.store import client
from memory.store.client import RedisClient
from memory.store.errors import StoreRefused, StoreUnavailable
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES
from tests.memory.turns import HERE
from tests.quiet_chat import QuietChat


async def nothing(_: object) -> None:
    """Ignore jobs and deletions."""


@pytest.fixture
def processes(memory: Memory, other: Memory) -> list[Maintenance]:
    memories = (memory, other)
    return [Maintenance(each, BackgroundLearner(each.learn), nothing, nothing) for each in memories]


async def wake_ups(memory: Memory) -> int:
    return int(await memory.client.call("XLEN", memory.keys.ready_queue))


async def test_after_its_first_sweep_a_process_sweeps_only_if_no_other_does(
    memory: Memory, processes: list[Maintenance]
) -> None:
    await memory.mailbox.put(HERE, Entry(1, 7, is_alone=False, body=b"words"))
    woken = []
    for process in (*processes, *processes):
        await memory.client.call("DEL", memory.keys.ready_queue)
        await process._sweep()
        woken.append(await wake_ups(memory))
    assert woken == [1, 1, 1, 0]


async def test_a_process_that_was_without_redis_sweeps_everything_again(
    memory: Memory, processes: list[Maintenance]
) -> None:
    first, second = processes
    await first._sweep()
    await second._sweep()
    await memory.mailbox.put(HERE, Entry(1, 7, is_alone=False, body=b"words"))
    await memory.client.call("DEL", memory.keys.ready_queue)

    async def fail() -> None:
        raise StoreUnavailable

    with pytest.raises(StoreUnavailable):
        await second._noting_outages(fail)()
    await second._sweep()
    assert await wake_ups(memory) == 1


async def test_a_receipt_that_a_ban_held_up_is_sent_after_the_ban(memory: Memory) -> None:
    reports: list[FinishedJob] = []

    async def report(finished: FinishedJob) -> None:
        reports.append(finished)
        if len(reports) < 3:
            raise FloodWait(0.05)

    maintenance = Maintenance(memory, BackgroundLearner(memory.learn), report, nothing)
    await maintenance._serve_jobs()
    await memory.jobs.start_job(Job("job", "forget", 7, 10, 1_000.0, b""))
    async with asyncio.timeout(60):
        while await memory.client.call("XLEN", memory.keys.jobs):
            await maintenance._serve_jobs()
    assert reports == [reports[0]] * 3
    assert await memory.jobs.run_job("job") is None


@pytest.mark.parametrize(
    ("refusal", "topic", "shown_in"),
    [
        (ChatMigrated(-100), 0, [(-100, 0)]),
        (Refused("message_gone"), 5, [(-7, 5)]),
        (Blocked(), 0, []),
        (Refused("message_gone"), 0, []),  # nobody knows whether it came: it must not come twice
    ],
    ids=str,
)
async def test_a_receipt_comes_in_a_new_message_if_its_question_is_out_of_reach(
    memory: Memory, refusal: TelegramError, topic: int, shown_in: list[tuple[int, int]]
) -> None:
    chat, about = QuietChat(), orjson.dumps(("forget.done", -7, 70, "en", topic))
    unsent = refusal if isinstance(refusal, Blocked) else OutcomeUnknown("ReadTimeout")
    chat.fails = {"edit": refusal} | ({} if shown_in else {"send": unsent})
    finished = FinishedJob(Job("job", "forget", 7, 10, 1_000.0, about), 1, Receipt())
    await Receipts(memory.jobs, chat, SENTENCES).report(finished)
    assert [(to.chat_id, to.topic_id) for to, _ in chat.sent] == shown_in
    assert chat.permits == [(-100 if isinstance(refusal, ChatMigrated) else -7, SHORT_WAIT_S)]


@pytest.mark.parametrize("error", [FloodWait(600), Unreachable("away")], ids=str)
async def test_a_job_that_cannot_be_reported_yet_or_that_another_process_runs_delays_no_other(
    memory: Memory, other: Memory, error: TelegramError
) -> None:
    reports: list[str] = []

    async def report(finished: FinishedJob) -> None:
        reports.append(finished.job.id)
        if finished.job.id == "delayed":
            raise error

    maintenance = Maintenance(memory, BackgroundLearner(memory.learn), report, nothing)
    await maintenance._serve_jobs()
    await other.store.lease(memory.keys.job("theirs", "lease"), 60_000).hold()
    for job in ("delayed", "theirs", "other"):
        await memory.jobs.start_job(Job(job, "forget", 7, 10, 1_000.0, b""))
    for _ in range(4):
        await maintenance._serve_jobs()
    assert reports == ["delayed", "other"]
    assert await memory.client.call("XLEN", memory.keys.jobs) == 2


async def test_late_learning_begins_as_soon_as_an_earlier_one_has_ended(memory: Memory) -> None:
    """Four at a time. At midnight all conversations are late that waited for a quota."""
    begun, ending = list[str](), asyncio.Event()

    async def learn(conversation: Scope) -> LearningRound:
        begun.append(conversation.tag)
        await ending.wait()
        return LearningRound()

    maintenance = Maintenance(memory, BackgroundLearner(learn), nothing, nothing)
    late = [f"c:{chat}:0" for chat in range(1, 7)]
    for due, tag in enumerate(late[:1] * 4 + late):  # the first one takes minutes: it is due again
        await memory.client.call("ZADD", memory.keys.learning, due, tag)
        if due < 4:
            await maintenance._learn_late()
    for begun_until in (4, 6):
        for _ in range(2):
            assert (await maintenance._learn_late() or 9) < 1
        await asyncio.sleep(0)
        assert [*dict.fromkeys(begun)] == late[:begun_until]
        ending.set()
        await asyncio.gather(*maintenance.learner.running.values())
    assert await maintenance._learn_late() is None


@pytest.mark.parametrize(
    ("errors", "every_s", "logged"),
    [
        ([StoreUnavailable("gone"), RuntimeError("a bug")], 0, ["postponed", "failed"]),
        ([StoreUnavailable("gone")], 600, ["postponed"]),
        ([StoreRefused("NOPERM: INFO")] * 3, 600, ["postponed"]),
    ],
)
async def test_a_failed_step_is_repeated_and_soon_if_redis_failed_it(
    monkeypatch: pytest.MonkeyPatch, errors: list[Exception], every_s: int, logged: list[str]
) -> None:
    monkeypatch.setattr("bot.runtime.maintenance._POSTPONED_S", 0.01)
    seen, left = asyncio.Event(), iter(errors)

    async def step() -> None:
        for error in left:
            raise error
        seen.set()

    with capture_logs() as logs:
        repeating = asyncio.create_task(repeat(step, "models", every_s))
        await asyncio.wait_for(seen.wait(), 10)
        repeating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await repeating
    told = [(f"periodic step {how}", "models") for how in logged]
    assert [(line["event"], line["step"]) for line in logs] == told


async def test_the_log_warns_of_a_clock_that_differs_from_that_of_redis(
    store: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logs:
        await watch_clock(store)
        assert logs == []
        monkeypatch.setattr(client, "time", lambda: time.time() + 300)
        await watch_clock(store)
    assert [(line["event"], line["redis_ahead_s"]) for line in logs] == [
        ("clock differs from Redis", -300)
    ]
