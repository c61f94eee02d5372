"""The turn worker on a real Valkey: leases, wake-ups, and the order of turns."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from PIL import Image
from structlog.testing import capture_logs

from bot.features.pictures.feature import LATE_PHOTO_MARK, PictureStep
from bot.features.reminders.due import message_of
from bot.language.catalogue import Catalogue
from bot.reply.parts import Part
from bot.telegram.errors import Blocked, FloodWait, OutcomeUnknown, Refused, TelegramError
from bot.telegram.updates import PHOTO_MARK, to_bytes
from bot.turn.answer import Answerer, AnswerStep
from bot.turn.deliver import Deliverer, Parked
from bot.turn.observers import (
    Answered,
    Event,
    Observer,
    PartSent,
    StepBegan,
    TurnBegan,
    TurnEnded,
    all_of,
)
from bot.turn.outbox import Outbox
from bot.turn.permits import Permits
from bot.turn.request import Request
from bot.turn.turn import MAX_FAILURES, TurnRunner
from bot.turn.worker import TurnWorker
from memory.behaviors.behavior import AIContextBehavior, AIContextBehaviorManager
from memory.behaviors.context import CallContext
from memory.memory import Memory, MemoryOptions
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Committed, OpenTurn
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.queue.turn_store import TurnTimes
from memory.scopes.changes import Revision
from memory.scopes.history import ChatHistory
from memory.scopes.log import Cursor
from memory.store.client import RedisClient
from memory.store.commands import Command, Reply, ScriptCall
from memory.store.errors import LeaseLost, StoreFull, StoreUnavailable
from memory.store.keys import Scope
from memory.work.item import WorkChanges, WorkItem
from tests.bot.features.services import SENTENCES
from tests.bot.runtime.test_work import no_pause
from tests.bot.telegram import raw
from tests.bot.telegram.test_intake import album_photo
from tests.lab.simulator.turn import ignore
from tests.memory.clients import full_redis
from tests.memory.conftest import TOKENS, memory_of
from tests.memory.turns import ANN, GROUP, HERE, begin, close, put, take, texts
from tests.memory.work.test_items import reminder, store
from tests.quiet_chat import QuietChat, no_export

LEASE_S = 2.0
OPTIONS = MemoryOptions(
    ttl_s=86_400,
    tail=50,
    cache_bytes=1_000_000,
    times=TurnTimes(lease_ms=int(LEASE_S * 1000), coalesce_ms=0, max_coalesce_ms=0),
)
BEFORE = Catalogue().text("de", "stop.before")
QUICKLY = TurnTimes(int(LEASE_S * 1000), coalesce_ms=60_000, max_coalesce_ms=60_000)

Step = Callable[[OpenTurn], Awaitable[Committed]]


class ScriptedRunner:
    """Runs one step of its script for each turn, then only closes turns; logs all turns."""

    def __init__(self, memory: Memory) -> None:
        self.script: list[Step] = []
        self.turns: list[OpenTurn] = []
        self.running = 0
        self.max_running = 0
        self._memory = memory
        self._news = asyncio.Condition()

    async def run(self, turn: OpenTurn) -> Committed:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            async with self._news:
                self.turns.append(turn)
                self._news.notify_all()
            step = self.script.pop(0) if self.script else self.close
            return await step(turn)
        finally:
            self.running -= 1

    async def close(self, turn: OpenTurn) -> Committed:
        return await close(self._memory, turn)

    async def begun(self, turns: int) -> OpenTurn:
        """Wait until `turns` turns have begun; return the last of these."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: len(self.turns) >= turns)
        return self.turns[turns - 1]

    @property
    def taken(self) -> list[tuple[str, list[int]]]:
        return [
            (turn.lease.conversation.tag, [entry.update_id for entry in turn.entries])
            for turn in self.turns
        ]


class Gate:
    """A step that waits until it is opened, then closes its turn."""

    def __init__(self, runner: ScriptedRunner) -> None:
        self._runner = runner
        self.opened = asyncio.Event()
        self.was_cancelled = asyncio.Event()

    async def __call__(self, turn: OpenTurn) -> Committed:
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise
        return await self._runner.close(turn)


class WatchedReadyQueue(ReadyQueue):
    """A ready queue that logs acknowledged wake-ups and counts renewals."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.client, memory.scripts, memory.keys.ready_queue)
        self.acknowledged: list[WakeUp] = []
        self.renewals = 0
        self._news = asyncio.Condition()

    async def acknowledge(self, wake_up: WakeUp, if_pending: str | None = None) -> None:
        await super().acknowledge(wake_up, if_pending)
        async with self._news:
            self.acknowledged.append(wake_up)
            self._news.notify_all()

    async def renew(self, wake_up: WakeUp) -> bool:
        is_ours = await super().renew(wake_up)
        async with self._news:
            self.renewals += 1
            self._news.notify_all()
        return is_ours

    async def until(self, is_true: Callable[[], bool]) -> None:
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(is_true)


async def say_yes(request: Request, _history: ChatHistory) -> Outbox:
    return Outbox(request.to, (Part("yes"),), said="yes")


async def no_give_up(_opened: OpenTurn) -> Outbox:
    raise NotImplementedError


class Saving(AIContextBehavior):
    """With a queue it takes so long that the lease would be renewed in the meantime."""

    def __init__(self, slow: WatchedReadyQueue | None = None) -> None:
        self._slow = slow
        self.saved = 0

    async def on_suspend(self, call_context: CallContext) -> None:
        del call_context
        if slow := self._slow:
            enough = slow.renewals + 2
            await slow.until(lambda: slow.renewals >= enough)
        self.saved += 1


class Rig:
    """A worker, the memory that it works on, and its scripted turns."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.runner = ScriptedRunner(memory)
        permits = Permits(4, memory.mailbox.wake)
        self.ready_queue = WatchedReadyQueue(memory)
        queue, histories, run = memory.turns, memory.histories, self.runner.run
        self.worker = TurnWorker(self.ready_queue, queue, histories, permits, run, max_turns=2)

    @asynccontextmanager
    async def listening(self, *updates: int) -> AsyncIterator[None]:
        """Let the worker read wake-ups, first of these updates; turns may outlast the block."""
        running = asyncio.create_task(self.worker.run())
        try:
            for update_id in updates:
                await put(self.memory, update_id)
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    @asynccontextmanager
    async def working(self, *updates: int) -> AsyncIterator[None]:
        """Let the worker run and work on these updates; cancel its turns at the end."""
        try:
            async with self.listening(*updates):
                yield
        finally:
            await self.worker.stop(grace_s=0)

    async def work(self, *updates: int) -> None:
        """Let the worker work on these updates until it acknowledges a wake-up."""
        async with self.working(*updates):
            await self.until_acknowledged(1)

    async def until_acknowledged(self, wake_ups: int) -> None:
        await self.ready_queue.until(lambda: len(self.ready_queue.acknowledged) >= wake_ups)

    def gate(self) -> Gate:
        """Let the next scripted turn wait at a gate; return the gate."""
        gate = Gate(self.runner)
        self.runner.script.append(gate)
        return gate

    async def another_dies(self) -> None:
        """Let another worker take the turn of a message, and end there."""
        dead = self.memory.ready_queue()
        await dead.read(1, 1)
        await put(self.memory, 1)
        await dead.read(1, 100)
        await take(self.memory)

    async def end_lease(self) -> None:
        """Let the time pass after which a lease is over and its wake-up is reclaimed."""
        keys, call = self.memory.keys, self.memory.client.call
        await call("DEL", keys.scope(HERE).lease)
        [[entry, _]] = await call("XRANGE", keys.ready_queue, "-", "+")
        silent = self.memory.ready_queue()
        await silent.postpone(WakeUp(entry, HERE.tag, 1), 0, int(LEASE_S * 1500))

    async def wake_ups(self) -> int:
        """Count the wake-ups that are not acknowledged."""
        return int(await self.memory.client.call("XLEN", self.memory.keys.ready_queue))

    async def waiting(self) -> int:
        mailbox = self.memory.keys.scope(HERE).mailbox
        return int(await self.memory.client.call("ZCARD", mailbox))

    async def is_held(self) -> bool:
        lease = self.memory.keys.scope(HERE).lease
        return bool(await self.memory.client.call("EXISTS", lease))


@pytest.fixture
def rig(store: RedisClient) -> Rig:
    rig = Rig(memory_of(store, options=OPTIONS))
    rig.memory.tokens.count("load")  # what it loads takes a second, which is no part of a lease
    return rig


@pytest.fixture(autouse=True)
def _no_pause_after_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.turn.worker._PAUSE_S", 0)


async def test_an_ended_worker_leaves_no_wake_up_no_lease_and_no_consumer(rig: Rig) -> None:
    async with rig.working(1):
        await rig.until_acknowledged(1)
        assert await rig.ready_queue.count_consumers(60_000) == 1
    assert await rig.ready_queue.count_consumers(60_000) == 0
    assert await texts(rig.memory) == ["text 1", "yes"]
    assert (await rig.wake_ups(), await rig.waiting(), await rig.is_held()) == (0, 0, False)


async def test_a_slow_conversation_does_not_delay_another(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.working(1):
        await rig.runner.begun(1)
        await put(rig.memory, 2, GROUP)
        await rig.until_acknowledged(1)
        assert rig.runner.taken == [(HERE.tag, [1]), (GROUP.tag, [2])]
        gate.opened.set()
        await rig.until_acknowledged(2)


async def test_no_more_turns_run_at_once_than_there_are_slots(rig: Rig) -> None:
    gates = [rig.gate(), rig.gate()]
    for update_id in (1, 2, 3):
        await put(rig.memory, update_id, Scope.of_chat(update_id))
    async with rig.working():
        await rig.runner.begun(2)
        gates[0].opened.set()
        await rig.runner.begun(3)
        gates[1].opened.set()
        await rig.until_acknowledged(3)
    assert rig.runner.max_running == 2


async def test_what_only_has_to_be_sent_does_not_wait_for_a_persons_answers(rig: Rig) -> None:
    """The notice of a turn that was given up, or a reply that is stored."""
    rig.worker.permits.max_turns = 1
    gate = rig.gate()
    await put(rig.memory, 3, Scope.of_chat(3))
    await put(rig.memory, 1)
    for _ in range(MAX_FAILURES):
        await rig.memory.turns.note_failure(await take(rig.memory), "ValueError")
    failed, replied = await take(rig.memory), await begin(rig.memory, 2, GROUP)
    await rig.memory.turns.write_outbox(replied, b"[]")
    async with rig.working():
        await rig.runner.begun(1)  # that of another chat, because these two are taken
        for turn in (failed, replied):
            await rig.memory.turns.hand_over(turn.lease)
            await rig.memory.mailbox.wake(turn.lease.conversation)
        await rig.runner.begun(3)
        assert sorted(rig.runner.taken[1:]) == [(GROUP.tag, [2]), (HERE.tag, [1])]
        gate.opened.set()


async def test_a_new_wake_up_of_a_held_conversation_goes_and_the_holders_stays(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.working(1):
        await rig.runner.begun(1)
        await rig.memory.mailbox.wake(HERE)
        await rig.until_acknowledged(1)
        assert await rig.wake_ups() == 1
        gate.opened.set()
        await rig.until_acknowledged(2)
    assert await rig.wake_ups() == 0


async def test_the_worker_that_reclaims_a_dead_workers_wake_up_begins_again(rig: Rig) -> None:
    await rig.another_dies()
    await rig.end_lease()
    async with rig.working():
        turn = await rig.runner.begun(1)
        await rig.until_acknowledged(1)
    assert (turn.attempts, await rig.wake_ups()) == (2, 0)


async def test_a_dead_workers_wake_up_stays_while_its_lease_is_held(rig: Rig) -> None:
    await rig.another_dies()
    [wake_up] = await rig.ready_queue.reclaim(1, 0)
    await rig.worker._serve(wake_up)
    assert (rig.runner.turns, await rig.wake_ups()) == ([], 1)


async def test_a_wake_up_stays_if_the_holder_of_the_lease_has_lost_its_own(rig: Rig) -> None:
    """The holder stood still while another worker served its wake-up, then took the lease again."""
    stalled, other = rig.memory.ready_queue(), rig.memory.ready_queue()
    await stalled.read(1, 1)
    await put(rig.memory, 1)
    [lost] = await stalled.read(1, 100)
    [taken_over] = await other.reclaim(1, 0)
    await close(rig.memory, await take(rig.memory))
    await other.acknowledge(taken_over)
    await put(rig.memory, 2)
    await rig.memory.turns.acquire(HERE, Cursor(), wake_up=lost.delivery)
    [wake_up] = await rig.ready_queue.read(1, 100)
    await rig.worker._serve(wake_up)
    assert (rig.runner.turns, await rig.wake_ups()) == ([], 1)


async def test_a_turn_longer_than_a_lease_keeps_its_lease_and_its_wake_up(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.working(1):
        turn = await rig.runner.begun(1)
        await rig.ready_queue.until(lambda: rig.ready_queue.renewals >= 6)
        gate.opened.set()
        await rig.until_acknowledged(1)
    assert (rig.runner.turns, rig.ready_queue.acknowledged[0].deliveries) == ([turn], 1)


async def test_a_wake_up_is_renewed_during_many_turns_that_are_short(rig: Rig) -> None:
    async def brief(turn: OpenTurn) -> Committed:
        if rig.ready_queue.renewals < 3:
            rig.runner.script.append(brief)
            await put(rig.memory, int(turn.id) + 1)
        return await rig.runner.close(turn)

    rig.runner.script = [brief]
    await rig.work(1)
    assert rig.ready_queue.acknowledged[0].deliveries == 1


async def test_a_turn_refused_by_a_partial_erasure_begins_again_at_once(rig: Rig) -> None:
    """The worker whose step was refused still holds the lease at that time."""

    async def refused(turn: OpenTurn) -> Committed:
        meta = rig.memory.keys.scope(turn.lease.conversation).meta
        await rig.memory.client.call("HINCRBY", meta, "erasure", 1)
        return await rig.runner.close(turn)

    rig.runner.script = [refused]
    await rig.work(1)
    first, second = rig.runner.turns
    assert (first.lease.erasure, second.lease.erasure) == ("0", "1")
    assert (second.attempts, await texts(rig.memory)) == (1, ["text 1", "yes"])
    assert (await rig.wake_ups(), await rig.is_held()) == (0, False)


async def test_hooks_of_behaviors_run_to_their_end_after_the_lease_ended(rig: Rig) -> None:
    slow, learning, steps = Saving(rig.ready_queue), list[Scope](), list[Event]()
    turn = answering(rig, say_yes, QuietChat(), slow, steps.append)
    turn.learn = learning.append
    rig.runner.script = [turn.run]
    with capture_logs() as log:
        await say_hello(rig)
        await rig.work()
    assert (slow.saved, learning, len(rig.runner.turns)) == (1, [HERE], 1)
    assert [line["event"] for line in log] == ["turn closed"]
    ended = [type(step) for step in steps if not isinstance(step, StepBegan)]
    assert ended == [TurnBegan, Answered, PartSent, TurnEnded]
    begun = [step.step for step in steps if isinstance(step, StepBegan)]
    assert begun == ["answer", "outbox", "delivery", "commit", "after"]


async def test_a_parked_turn_ends_with_its_hooks_and_leaves_no_wake_up(rig: Rig) -> None:
    """Renewals that come too late for its lease end neither the turn nor its behaviors' hooks."""
    slow = Saving(rig.ready_queue)
    rig.runner.script = [answering(rig, say_yes, flooded(), slow).run]
    with capture_logs() as log:
        await say_hello(rig)
        await rig.work()
    assert (slow.saved, [line["event"] for line in log]) == (1, ["turn parked"])
    assert (await rig.wake_ups(), await rig.waiting(), await rig.is_held()) == (0, 1, False)


class SlowToAnswerCommits(RedisClient):
    """A store that answers a commit only after the lease would have been renewed."""

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        replies = await super().pipeline(commands)
        if isinstance(replies[-1], list) and replies[-1][:1] == [b"committed"]:
            await asyncio.sleep(LEASE_S)
        return replies


async def test_a_late_answer_to_a_commit_loses_no_lease(valkey: str) -> None:
    client = await SlowToAnswerCommits.open(valkey)
    rig = Rig(memory_of(client, options=OPTIONS))
    with capture_logs() as log:
        await rig.work(1)
    assert (await texts(rig.memory), log) == (["text 1", "yes"], [])
    await client.close()


async def test_a_turn_that_lost_its_lease_ends_and_later_messages_are_answered(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.working(1):
        await rig.runner.begun(1)
        await put(rig.memory, 2)
        request = {"receipt": "receipt", "last_update": "1", "until": 0, "ttl_s": 86_400}
        await rig.memory.store.run("wipe", HERE, request)
        await gate.was_cancelled.wait()
        await rig.until_acknowledged(1)
    assert rig.runner.taken == [(HERE.tag, [1]), (HERE.tag, [2])]


async def test_a_turn_without_the_store_goes_on_once_before_its_lease_ends(rig: Rig) -> None:
    async def fail(_: OpenTurn) -> Committed:
        raise StoreUnavailable("away")

    rig.runner.script = [fail, fail, fail]
    async with rig.working(1):
        turns = [await rig.runner.begun(number) for number in (1, 2)]
        for number in (3, 4):
            await rig.end_lease()
            turns.append(await rig.runner.begun(number))
        await rig.until_acknowledged(1)
    assert len({turn.lease.token for turn in turns}) == len(turns)
    assert [turn.attempts for turn in turns] == [1, 1, 2, 3]
    assert rig.ready_queue.acknowledged[0].deliveries == 5  # two of them to silent workers
    assert (turns[-1].failures, turns[-1].error) == (0, "")


async def test_a_turn_that_fails_begins_again_soon_with_its_error_noted(rig: Rig) -> None:
    async def fail(_: OpenTurn) -> Committed:
        raise ValueError("a mistake")

    rig.runner.script = [fail, fail]
    async with rig.working(1):
        turn = await rig.runner.begun(3)
        await rig.until_acknowledged(1)
    assert (turn.attempts, turn.failures, turn.error) == (3, 2, "ValueError")
    assert rig.ready_queue.acknowledged[0].deliveries < turn.attempts


async def test_an_error_after_the_commit_does_not_count_against_the_next_turn(rig: Rig) -> None:
    async def fail_late(turn: OpenTurn) -> Committed:
        await put(rig.memory, 2)
        await rig.runner.close(turn)
        raise ValueError("a mistake")

    rig.runner.script = [fail_late]
    async with rig.working(1):
        turn = await rig.runner.begun(2)
        await rig.until_acknowledged(1)
    assert (turn.id, turn.attempts, turn.failures) == ("2", 1, 0)


async def test_a_stopping_worker_finishes_its_turn_and_hands_over_the_next_one(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.listening(1):
        await rig.runner.begun(1)
        await put(rig.memory, 2)
    stopping = asyncio.create_task(rig.worker.stop(grace_s=10))
    gate.opened.set()
    await stopping
    assert await texts(rig.memory) == ["text 1", "yes"]
    assert (await rig.waiting(), await rig.is_held(), await rig.wake_ups()) == (1, False, 1)


async def test_a_turn_cancelled_by_a_stop_does_not_count_as_an_attempt(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.listening(1):
        await rig.runner.begun(1)
    await rig.worker.stop(grace_s=0)
    assert gate.was_cancelled.is_set()
    [wake_up] = await rig.memory.ready_queue().read(5, 1)
    assert (wake_up.tag, await rig.wake_ups()) == (HERE.tag, 1)
    assert (await take(rig.memory)).attempts == 1


async def test_a_worker_cancelled_while_it_takes_a_lease_keeps_its_wake_up_pending(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script may have run. Then the lease is held, and its wake-up must still be there."""
    taken, acquire = asyncio.Event(), rig.memory.turns.acquire

    async def unanswered(conversation: Scope, cursor: Cursor, token: str, wake_up: str) -> None:
        await acquire(conversation, cursor, token, wake_up)
        taken.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(rig.memory.turns, "acquire", unanswered)
    async with rig.listening(1):
        await taken.wait()
    await rig.worker.stop(grace_s=0)
    assert (await rig.wake_ups(), await rig.waiting()) == (1, 1)
    assert await rig.ready_queue.count_consumers(60_000) == 1  # else its wake-up would be lost


async def test_a_worker_goes_on_reading_wake_ups_after_an_unexpected_error(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, failures = rig.ready_queue.read, [ValueError("odd"), StoreUnavailable("away")]

    async def fail_first(max_wake_ups: int, block_ms: int) -> list[WakeUp]:
        if failures:
            raise failures.pop()
        return await read(max_wake_ups, block_ms)

    monkeypatch.setattr(rig.ready_queue, "read", fail_first)
    await rig.work(1)
    assert failures == []


async def test_a_run_begins_again_with_messages_that_follow_quickly(rig: Rig) -> None:
    rig.memory.turns._times = QUICKLY
    gates = [rig.gate() for _ in range(4)]
    async with rig.working():
        for update_id, gate in enumerate(gates[:3], 1):
            await put(rig.memory, update_id)
            await rig.runner.begun(update_id)
            assert not gate.was_cancelled.is_set()
        await put(rig.memory, 4)
        last = await rig.runner.begun(4)
        gates[3].opened.set()
        await rig.until_acknowledged(1)
    assert [gate.was_cancelled.is_set() for gate in gates] == [True, True, True, False]
    assert (last.attempts, last.failures) == (1, 0)
    assert await texts(rig.memory) == ["text 1 text 2 text 3 text 4", "yes"]


class ChatWithPhotos(QuietChat):
    async def download(self, file_id: str, max_bytes: int) -> bytes:
        del file_id, max_bytes
        file = BytesIO()
        Image.new("RGB", (30, 20)).save(file, "JPEG")
        return file.getvalue()


class SeesPictures:
    """An answer step that notes what the model would be asked, and waits at a gate."""

    def __init__(self) -> None:
        self._pictures = PictureStep(ChatWithPhotos(), "low", TOKENS, SENTENCES)
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self.asked: list[str] = []

    async def __call__(self, request: Request, history: ChatHistory) -> Outbox:
        seen = await self._pictures.answer(request, history)
        assert isinstance(seen, Request)
        self.asked.append(seen.message.text)
        self.begun.set()
        await self.gate.wait()
        return await say_yes(request, history)


async def test_a_picture_that_comes_later_into_the_turn_of_its_album_is_the_next_turn(
    rig: Rig,
) -> None:
    step = SeesPictures()
    rig.runner.script = [answering(rig, step, QuietChat()).run] * 2

    async def send(update_id: int) -> None:
        photo = raw.inbound(album_photo(update_id, chat=raw.PRIVATE))
        entry = Entry(update_id, ANN, is_alone=False, body=to_bytes(photo), is_grouped=True)
        await rig.memory.mailbox.put(HERE, entry)

    await send(1)
    await send(2)
    async with rig.working():
        await step.begun.wait()
        # The first two came longer ago than the pictures of an album are waited for.
        came_ms = int(time.time() * 1000) - 1_100
        seen = rig.memory.keys.scope(HERE).seen
        await rig.memory.client.call("ZADD", seen, came_ms, 1, came_ms, 2)
        await send(3)
        step.gate.set()
        await rig.until_acknowledged(2)
    assert step.asked == [f"{PHOTO_MARK}\n{PHOTO_MARK}", LATE_PHOTO_MARK]
    assert await texts(rig.memory) == [*[PHOTO_MARK] * 2, "yes", LATE_PHOTO_MARK, "yes"]


async def test_a_clear_ends_a_turn_that_is_begun_again(rig: Rig) -> None:
    rig.memory.turns._times = QUICKLY
    rig.gate(), rig.gate()
    nonce = await rig.memory.questions.ask(HERE, "clear", ANN)
    async with rig.listening(1):
        await rig.runner.begun(1)
        await put(rig.memory, 2)
        await rig.runner.begun(2)
        await rig.memory.forgetting.clear(HERE, nonce, ANN, 2, as_admin=False)
        await put(rig.memory, 3)
        await rig.runner.begun(3)
    await rig.worker.stop(grace_s=10)
    assert await texts(rig.memory) == ["text 3", "yes"]


class ShownAnswer:
    """An answer step that has shown a part of the reply and goes on writing."""

    def __init__(self, shown: str | None) -> None:
        self.begun = asyncio.Event()
        self._shown = shown

    async def __call__(self, request: Request, _: ChatHistory) -> Outbox:
        request.run.shown = self._shown
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError


def flooded() -> QuietChat:
    chat = QuietChat()
    chat.fails["send"] = FloodWait(60)
    return chat


async def lose_the_lease(request: Request, _history: ChatHistory) -> Outbox:
    raise LeaseLost(request.last.text)


async def lose_the_store(request: Request, _history: ChatHistory) -> Outbox:
    raise StoreUnavailable(request.last.text)


@pytest.mark.parametrize(
    ("step", "error", "suspended"),
    [(say_yes, Parked, 1), (lose_the_store, StoreUnavailable, 1), (lose_the_lease, LeaseLost, 0)],
)
async def test_behaviors_are_suspended_when_a_turn_fails_or_is_parked_here(
    rig: Rig, step: AnswerStep, error: type[Exception], suspended: int
) -> None:
    behavior = Saving()
    await say_hello(rig)
    with pytest.raises(error):
        await answering(rig, step, flooded(), behavior).run(await take(rig.memory))
    assert behavior.saved == suspended


def answering(
    rig: Rig,
    step: AnswerStep,
    chat: QuietChat,
    behavior: AIContextBehavior | None = None,
    observe: Observer = ignore,
) -> TurnRunner:
    memory = rig.memory
    behaviors = AIContextBehaviorManager([behavior] if behavior else [], 60)
    return TurnRunner(
        memory.turns,
        memory.histories,
        Answerer([step], SENTENCES, observe),
        no_give_up,
        Deliverer(chat, 10.0, no_export, observe),
        behaviors,
        list[Scope]().append,
        observe,
        memory.work,
    )


@pytest.mark.parametrize(
    ("error", "rule", "left"),
    [
        (Refused("closed"), "", ("Say hello", False, False)),
        (Refused("closed"), "0 8 * * *", ("Say hello", True, True)),
        (Refused("closed"), "for a month", ("Say hello", False, True)),
        (Refused("closed"), "but not always", ("Say hello", True, True)),
        (None, "open again", ("Say hello", True, False)),
        (None, "full", ("Say hello", True, True)),
        (Refused("topic_gone"), "0 8 * * *", ("Say hello", False, False)),
        (Refused("topic_gone"), "for a month", ("Say hello", False, False)),
        (Blocked(), "", ("Say hello", False, False)),
        (Blocked(), "0 8 * * *", ("Say hello", True, True)),
        (Refused("chat_gone"), "0 8 * * *", None),
        (Refused("topic_gone"), "cancelled", None),
        (Refused("topic_gone"), "off the record", ("Say hello", True, False)),
    ],
)
async def test_the_text_of_a_task_is_due_if_nobody_can_see_its_answer_any_more(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: TelegramError | None, rule: str, left: object
) -> None:
    """One that repeats ends if for a month no answer was delivered in its chat.

    Off the record nothing ends, and the text does not enter the history. One that is cancelled
    while its answer is refused stays cancelled. No turn fails if Redis is full after its commit.
    """
    memory, chat, now = rig.memory, QuietChat(), time.time()
    one = replace(reminder("Say hello", due=int(now)), rule=rule and "0 8 * * *", is_task=True)
    closed = {"for a month": now - 30 * 86_400, "but not always": 9, "open again": 9, "full": 9}
    one = await store(memory, replace(one, closed_since=closed.get(rule, 0)))
    find = memory.work.find
    taken = await memory.work.take(HERE, one.id, LEASE_S)
    assert taken
    entry = Entry(one.turn_id, ANN, is_alone=True, body=to_bytes(message_of(one, now)))
    await memory.work.close(taken, now + 60 if rule else 0, entry.to_member())

    async def found_and_cancelled(*item: Any) -> WorkItem | None:
        if rule == "full":
            raise StoreFull
        found = await find(*item)
        await memory.work.cancel(*item)
        return found

    if rule in ("cancelled", "full"):
        monkeypatch.setattr(memory.work, "find", found_and_cancelled)
    if is_off_record := rule == "off the record":
        session = f"{now * 1e3 - 9e4:.0f}|{now * 1e3 + 9e4:.0f}|1|7|c|"
        await memory.client.call("HSET", memory.keys.scope(HERE).meta, "off_record", session)
    chat.fails |= {"send": error} if error else {}
    await answering(rig, say_yes, chat).run(await take(memory))
    items = await memory.work.list_open(HERE)
    found = [(each.text, each.is_task, each.closed_since > 0) for each in items]
    assert found == ([left] if left else [])
    kept = ["⏰ Say hello"] * (not is_off_record) + ["yes"] * (error is None)
    assert await texts(memory) == ["text 1", "yes", *kept]


@pytest.mark.parametrize("errors", [(), (OutcomeUnknown("timeout"),)])
async def test_a_reply_whose_reminder_has_no_room_in_redis_is_sent_once_and_closed_later(
    rig: Rig, errors: Sequence[OutcomeUnknown]
) -> None:
    """The commit would find room, because it frees memory, but not the entry of the index."""
    memory, item = rig.memory, reminder(due=time.time() - 1)

    class Filling(QuietChat):
        async def send(self, *sent: Any) -> int:
            await memory.client.call("CONFIG SET", "maxmemory", 1)
            message_id = await super().send(*sent)
            for error in errors:
                raise error
            return message_id

    async def set_it(request: Request, history: ChatHistory) -> Outbox:
        return replace(await say_yes(request, history), work=WorkChanges([item]).encode())

    await say_hello(rig)
    turns = answering(rig, set_it, chat := Filling())
    turns.deliverer.pause = no_pause
    async with full_redis(memory.client, 2**30):
        with pytest.raises(StoreFull):
            await turns.run(await take(memory))
        assert await memory.work.list_open(HERE) == []
        await memory.client.call("CONFIG SET", "maxmemory", 2**30)
        await memory.client.call("DEL", memory.keys.scope(HERE).lease)
        await turns.run(await take(memory))
    assert chat.texts == ["yes"]
    assert await memory.work.find_due(8) == [(HERE, item.id)]


async def say_hello(rig: Rig) -> None:
    said = raw.inbound(raw.message("hello"))
    await rig.memory.mailbox.put(HERE, Entry(1, ANN, is_alone=False, body=to_bytes(said)))


@pytest.mark.parametrize(
    ("shown", "sent", "remembered"),
    [
        ("Once upon", "Once upon\n\n(Angehalten)", ["hello", "Once upon"]),
        ("", BEFORE, ["hello"]),
        (None, BEFORE, ["hello"]),
        ("A fact", BEFORE, ["hello"]),
    ],
    ids=["in the middle", "while a tool runs", "before the first word", "erased since"],
)
async def test_a_stopped_reply_is_what_was_shown_of_it_also_if_the_store_was_away(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, shown: str | None, sent: str, remembered: list[str]
) -> None:
    chat, step, store_reply = QuietChat(), ShownAnswer(shown), rig.memory.turns.write_outbox

    async def away_once(*_: object) -> None:
        monkeypatch.setattr(rig.memory.turns, "write_outbox", store_reply)
        if shown == "A fact":
            await rig.memory.scopes.update(HERE, lambda _: Revision())
        raise StoreUnavailable("away")

    monkeypatch.setattr(rig.memory.turns, "write_outbox", away_once)
    rig.runner.script = [answering(rig, step, chat).run] * 3
    async with rig.working():
        await say_hello(rig)
        await step.begun.wait()
        assert await rig.memory.mailbox.stop(HERE, 2, ANN) == "stopped"
        await rig.until_acknowledged(1)
    assert chat.texts == [sent]
    assert await texts(rig.memory) == remembered


async def test_a_worker_that_is_replaced_hears_a_stop_and_keeps_what_was_shown(
    store: RedisClient,
) -> None:
    """Its lease would be renewed only after its grace."""
    rig = Rig(memory_of(store, options=replace(OPTIONS, times=TurnTimes(60_000, 0, 0))))
    chat, step = QuietChat(), ShownAnswer("Once upon")
    rig.runner.script = [answering(rig, step, chat).run] * 2
    async with rig.listening():
        await say_hello(rig)
        await step.begun.wait()
    stopping = asyncio.create_task(rig.worker.stop(grace_s=10))
    assert await rig.memory.mailbox.stop(HERE, 2, ANN) == "stopped"
    await stopping
    assert await texts(rig.memory) == ["hello", "Once upon"]


async def test_a_stopped_turn_of_a_dead_worker_gets_a_sentence_without_the_model(rig: Rig) -> None:
    chat, step = QuietChat(), ShownAnswer("Once")
    await say_hello(rig)
    await take(rig.memory)
    await rig.memory.mailbox.stop(HERE, 2, ANN)
    await rig.memory.client.call("DEL", rig.memory.keys.scope(HERE).lease)
    rig.runner.script = [answering(rig, step, chat).run]
    await rig.work()
    assert chat.texts == [BEFORE]
    assert not step.begun.is_set()


def test_an_observer_that_fails_ends_no_turn_and_the_others_hear_of_the_step() -> None:
    heard: list[Event] = []

    def fail(_: Event) -> None:
        raise ValueError

    all_of([fail, heard.append])(Answered(1.0))
    assert heard == [Answered(1.0)]
