"""The worker on a real Valkey: who holds a conversation, who rings, when a bell may go."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
from structlog.testing import capture_logs

from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.reply.parts import Part
from bot.telegram.updates import to_bytes
from bot.turn.after import AfterTurn
from bot.turn.answer import Answerer
from bot.turn.conversation_worker import ConversationWorker
from bot.turn.deliver import Deliverer, Parked
from bot.turn.observers import Answered, Event, PartSent, TurnEnded
from bot.turn.outbox import Outbox
from bot.turn.permits import Permits, PersonLimits
from bot.turn.request import Request
from bot.turn.turn import TurnRunner
from bot.turn.worker import TurnWorker
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.call_context import CallContext
from memory.memory import Memory, MemoryOptions
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Committed, OpenTurn
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.queue.turns import TurnTimes
from memory.scopes.delta import Cursor
from memory.scopes.history import ChatHistory
from memory.store.client import RedisClient
from memory.store.commands import Command, Reply, ScriptCall
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.bot.telegram import raw
from tests.memory.turns import ANN, GROUP, HERE, close, put, take, texts
from tests.quiet_chat import QuietChat, no_export

LEASE_S = 0.6
OPTIONS = MemoryOptions(
    ttl_s=86_400,
    tail=50,
    cache_bytes=1_000_000,
    times=TurnTimes(lease_ms=int(LEASE_S * 1000), coalesce_ms=0, max_coalesce_ms=0),
)

Step = Callable[[OpenTurn], Awaitable[Committed]]


class ScriptedRunner:
    """Runs turns by its script, one step a turn, then simply closes them; logs who came."""

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
        """Return the `turns`-th turn once it has begun."""
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(lambda: len(self.turns) >= turns)
        return self.turns[turns - 1]

    @property
    def taken(self) -> list[tuple[str, list[int]]]:
        return [
            (turn.lease.conversation.tag, [entry.update_id for entry in turn.entries])
            for turn in self.turns
        ]


class Gate:
    """A step that closes its turn only once it is opened."""

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


class WatchedDoorbell(ReadyQueue):
    """A doorbell that logs what was acknowledged and counts renewals."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.client, memory.scripts, memory.keys.ready_queue)
        self.acknowledged: list[WakeUp] = []
        self.renewals = 0
        self._news = asyncio.Condition()

    async def acknowledge(self, wake_up: WakeUp) -> None:
        await super().acknowledge(wake_up)
        await self._note(wake_up)

    async def acknowledge_if_pending(self, wake_up: WakeUp, delivery: str) -> None:
        await super().acknowledge_if_pending(wake_up, delivery)
        await self._note(wake_up)

    async def _note(self, wake_up: WakeUp) -> None:
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
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(is_true)


async def say_yes(request: Request, _history: ChatHistory) -> Outbox:
    return Outbox(request.to, (Part("yes"),), said="yes")


async def no_give_up(_opened: OpenTurn) -> Outbox:
    raise NotImplementedError


class SlowAtTheEnd(AIContextBehavior):
    """Takes so long to save itself that a lease would be renewed meanwhile."""

    def __init__(self, ready_queue: WatchedDoorbell) -> None:
        self._ready_queue = ready_queue
        self.saved = 0

    async def on_suspend(self, call_context: CallContext) -> None:
        del call_context
        enough = self._ready_queue.renewals + 2
        await self._ready_queue.until(lambda: self._ready_queue.renewals >= enough)
        self.saved += 1


class Rig:
    """A worker and its surroundings."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.runner = ScriptedRunner(memory)
        permits = Permits(PersonLimits(), memory.mailbox.wake)
        self.ready_queue = WatchedDoorbell(memory)
        conversations = ConversationWorker(
            self.ready_queue, memory.turns, memory.histories, permits, self.runner.run
        )
        self.worker = TurnWorker(self.ready_queue, conversations, max_turns=2)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Let the worker hear bells while the block lasts; what it serves then goes on."""
        running = asyncio.create_task(self.worker.run())
        try:
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Let the worker work while the block lasts."""
        try:
            async with self.listening():
                yield
        finally:
            await self.worker.stop(grace_s=0)

    async def until_acknowledged(self, wake_ups: int) -> None:
        await self.ready_queue.until(lambda: len(self.ready_queue.acknowledged) >= wake_ups)

    def gate(self) -> Gate:
        """Have the next turn wait; return what it waits for."""
        gate = Gate(self.runner)
        self.runner.script.append(gate)
        return gate

    async def wake_ups(self) -> int:
        """Count the bells that are not acknowledged."""
        return int(await self.memory.client.call("XLEN", self.memory.keys.ready_queue))

    async def waiting(self) -> int:
        mailbox = self.memory.keys.scope(HERE).mailbox
        return int(await self.memory.client.call("ZCARD", mailbox))

    async def is_held(self) -> bool:
        lease = self.memory.keys.scope(HERE).lease
        return bool(await self.memory.client.call("EXISTS", lease))


@pytest.fixture
def rig(store: RedisClient, tokens: TokenCounter) -> Rig:
    return Rig(Memory(store, 42, tokens, None, OPTIONS))


async def test_mail_is_answered_and_leaves_neither_bell_nor_lease(rig: Rig) -> None:
    async with rig.working():
        await put(rig.memory, 1)
        await rig.until_acknowledged(1)
    assert await texts(rig.memory) == ["text 1", "yes"]
    assert (await rig.wake_ups(), await rig.waiting(), await rig.is_held()) == (0, 0, False)


async def test_a_slow_conversation_does_not_delay_another(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.working():
        await put(rig.memory, 1)
        await rig.runner.begun(1)
        await put(rig.memory, 2, GROUP)
        await rig.until_acknowledged(1)
        assert rig.runner.taken == [(HERE.tag, [1]), (GROUP.tag, [2])]
        gate.opened.set()
        await rig.until_acknowledged(2)


async def test_no_more_turns_run_at_once_than_there_are_places(rig: Rig) -> None:
    gates = [rig.gate(), rig.gate()]
    async with rig.working():
        for update_id in (1, 2, 3):
            await put(rig.memory, update_id, Scope.of_chat(update_id))
        await rig.runner.begun(2)
        gates[0].opened.set()
        await rig.runner.begun(3)
        gates[1].opened.set()
        await rig.until_acknowledged(3)
    assert rig.runner.max_running == 2


async def test_a_conversations_messages_are_answered_one_after_another_in_order(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.working():
        await put(rig.memory, 1)
        await rig.runner.begun(1)
        for update_id in (2, 3):
            await put(rig.memory, update_id)
        gate.opened.set()
        await rig.until_acknowledged(1)
    assert rig.runner.taken == [(HERE.tag, [1]), (HERE.tag, [2, 3])]
    assert rig.runner.max_running == 1


async def test_a_new_bell_of_a_held_conversation_goes_and_its_holders_stays(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.working():
        await put(rig.memory, 1)
        await rig.runner.begun(1)
        await rig.memory.mailbox.wake(HERE)
        await rig.until_acknowledged(1)
        assert await rig.wake_ups() == 1
        gate.opened.set()
        await rig.until_acknowledged(2)
    assert await rig.wake_ups() == 0


async def test_a_dead_workers_turn_is_begun_again_by_whoever_reclaims_its_bell(rig: Rig) -> None:
    dead = rig.memory.ready_queue()
    await dead.read(1, 1)
    await put(rig.memory, 1)
    await dead.read(1, 100)
    await take(rig.memory)
    async with rig.working():
        turn = await rig.runner.begun(1)
        await rig.until_acknowledged(1)
    assert (turn.attempts, await rig.wake_ups()) == (2, 0)


async def test_a_dead_workers_bell_stays_while_its_lease_is_held(rig: Rig) -> None:
    dead = rig.memory.ready_queue()
    await dead.read(1, 1)
    await put(rig.memory, 1)
    await dead.read(1, 100)
    await take(rig.memory)
    [wake_up] = await rig.ready_queue.reclaim(1, 0)
    await rig.worker._serve(wake_up)
    assert (rig.runner.turns, await rig.wake_ups()) == ([], 1)


async def test_a_bell_stays_while_the_holder_has_lost_its_own(rig: Rig) -> None:
    """It slept while another worker served the bell; waking, it takes the lease once more."""
    slept, other = rig.memory.ready_queue(), rig.memory.ready_queue()
    await slept.read(1, 1)
    await put(rig.memory, 1)
    [lost] = await slept.read(1, 100)
    [taken_over] = await other.reclaim(1, 0)
    await close(rig.memory, await take(rig.memory))
    await other.acknowledge(taken_over)
    await put(rig.memory, 2)
    await rig.memory.turns.acquire(HERE, Cursor(), wake_up=lost.delivery)
    [wake_up] = await rig.ready_queue.read(1, 100)
    await rig.worker._serve(wake_up)
    assert (rig.runner.turns, await rig.wake_ups()) == ([], 1)


async def test_a_turn_longer_than_a_lease_keeps_lease_and_bell(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.working():
        await put(rig.memory, 1)
        turn = await rig.runner.begun(1)
        await rig.ready_queue.until(lambda: rig.ready_queue.renewals >= 6)
        gate.opened.set()
        await rig.until_acknowledged(1)
    assert (rig.runner.turns, rig.ready_queue.acknowledged[0].deliveries) == ([turn], 1)


async def test_a_bell_is_renewed_over_a_row_of_turns_too_short_to_renew_anything(
    rig: Rig,
) -> None:
    async def brief(turn: OpenTurn) -> Committed:
        if rig.ready_queue.renewals < 3:
            rig.runner.script.append(brief)
            await put(rig.memory, int(turn.id) + 1)
        return await rig.runner.close(turn)

    rig.runner.script = [brief]
    async with rig.working():
        await put(rig.memory, 1)
        await rig.until_acknowledged(1)
    assert rig.ready_queue.acknowledged[0].deliveries == 1


async def test_a_turn_refused_by_a_partial_erasure_begins_again_at_once(rig: Rig) -> None:
    """The lease is still held then, by nobody but the refused holder itself."""

    async def refused(turn: OpenTurn) -> Committed:
        meta = rig.memory.keys.scope(turn.lease.conversation).meta
        await rig.memory.client.call("HINCRBY", meta, "erasure", 1)
        return await rig.runner.close(turn)

    rig.runner.script = [refused]
    async with rig.working():
        await put(rig.memory, 1)
        await rig.until_acknowledged(1)
    first, second = rig.runner.turns
    assert (first.lease.erasure, second.lease.erasure) == ("0", "1")
    assert (second.attempts, await texts(rig.memory)) == (1, ["text 1", "yes"])
    assert (await rig.wake_ups(), await rig.is_held()) == (0, False)


async def test_behaviors_are_told_of_a_turn_to_its_end_although_its_lease_went_with_the_commit(
    rig: Rig,
) -> None:
    slow, learning, steps = SlowAtTheEnd(rig.ready_queue), list[Scope](), list[Event]()
    turn = TurnRunner(
        rig.memory.turns,
        rig.memory.histories,
        Answerer([say_yes], no_give_up, Sentences(Catalogue()), steps.append),
        Deliverer(QuietChat(), 10.0, no_export, steps.append),
        AfterTurn(slow, learning.append, steps.append),
    )
    rig.runner.script = [turn.run]
    said = raw.inbound(raw.message("hello"))
    with capture_logs() as log:
        async with rig.working():
            await rig.memory.mailbox.put(HERE, Entry(1, ANN, is_command=False, body=to_bytes(said)))
            await rig.until_acknowledged(1)
    assert (slow.saved, learning, len(rig.runner.turns)) == (1, [HERE], 1)
    assert [line["event"] for line in log] == ["turn closed"]
    assert [type(step) for step in steps] == [Answered, PartSent, TurnEnded]


class SlowToAnswerCommits(RedisClient):
    """A store whose answer to a commit comes when its lease would have been renewed already."""

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        replies = await super().pipeline(commands)
        if isinstance(replies[-1], list) and replies[-1][:1] == [b"committed"]:
            await asyncio.sleep(LEASE_S)
        return replies


async def test_a_commit_whose_answer_comes_late_is_not_taken_for_a_lost_lease(
    valkey: str, tokens: TokenCounter
) -> None:
    client = await SlowToAnswerCommits.open(valkey)
    rig = Rig(Memory(client, 42, tokens, None, OPTIONS))
    with capture_logs() as log:
        async with rig.working():
            await put(rig.memory, 1)
            await rig.until_acknowledged(1)
    assert (await texts(rig.memory), log) == (["text 1", "yes"], [])
    await client.close()


async def test_a_turn_whose_lease_is_gone_is_ended_and_what_is_left_is_answered(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.working():
        await put(rig.memory, 1)
        await rig.runner.begun(1)
        await put(rig.memory, 2)
        keys = rig.memory.keys.scope(HERE).all
        await rig.memory.scripts["wipe"](keys, ("receipt", 1, 86_400))
        await gate.was_cancelled.wait()
        await rig.until_acknowledged(1)
    assert rig.runner.taken == [(HERE.tag, [1]), (HERE.tag, [2])]


async def test_a_parked_turns_bell_goes(rig: Rig) -> None:
    async def park(turn: OpenTurn) -> Committed:
        await rig.memory.turns.write_outbox(turn.lease, b"[]")
        await rig.memory.turns.park(turn.lease, 30_000)
        raise Parked(30)

    rig.runner.script = [park]
    async with rig.working():
        await put(rig.memory, 1)
        await rig.until_acknowledged(1)
    assert (await rig.wake_ups(), await rig.waiting(), await rig.is_held()) == (0, 1, False)


async def test_a_turn_that_lost_the_store_is_begun_again_when_its_lease_is_over(rig: Rig) -> None:
    async def fail(_: OpenTurn) -> Committed:
        raise StoreUnavailable("away")

    rig.runner.script = [fail]
    async with rig.working():
        await put(rig.memory, 1)
        turn = await rig.runner.begun(2)
        await rig.until_acknowledged(1)
    assert (turn.attempts, rig.ready_queue.acknowledged[0].deliveries) == (2, 2)
    assert (turn.failures, turn.error) == (0, "")


async def test_a_turn_that_fails_is_begun_again_soon_with_its_error_noted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: OpenTurn) -> Committed:
        raise ValueError("a mistake")

    monkeypatch.setattr("bot.turn.conversation_worker._PAUSE_S", 0)
    rig.runner.script = [fail, fail]
    async with rig.working():
        await put(rig.memory, 1)
        turn = await rig.runner.begun(3)
        await rig.until_acknowledged(1)
    assert (turn.attempts, turn.failures, turn.error) == (3, 2, "ValueError")
    assert rig.ready_queue.acknowledged[0].deliveries == 1


async def test_a_mistake_after_the_commit_is_not_counted_against_the_next_turn(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_late(turn: OpenTurn) -> Committed:
        await put(rig.memory, 2)
        await rig.runner.close(turn)
        raise ValueError("a mistake")

    monkeypatch.setattr("bot.turn.conversation_worker._PAUSE_S", 0)
    rig.runner.script = [fail_late]
    async with rig.working():
        await put(rig.memory, 1)
        turn = await rig.runner.begun(2)
        await rig.until_acknowledged(1)
    assert (turn.id, turn.attempts, turn.failures) == ("2", 1, 0)


async def test_a_stopping_worker_finishes_its_turn_and_hands_over_what_comes_next(
    rig: Rig,
) -> None:
    gate = rig.gate()
    async with rig.listening():
        await put(rig.memory, 1)
        await rig.runner.begun(1)
        await put(rig.memory, 2)
    stopping = asyncio.create_task(rig.worker.stop(grace_s=10))
    gate.opened.set()
    await stopping
    assert await texts(rig.memory) == ["text 1", "yes"]
    assert (await rig.waiting(), await rig.is_held(), await rig.wake_ups()) == (1, False, 1)


async def test_a_turn_that_outlasts_the_grace_is_handed_over_as_if_never_tried(rig: Rig) -> None:
    gate = rig.gate()
    async with rig.listening():
        await put(rig.memory, 1)
        await rig.runner.begun(1)
    await rig.worker.stop(grace_s=0)
    assert gate.was_cancelled.is_set()
    [wake_up] = await rig.memory.ready_queue().read(5, 1)
    assert (wake_up.tag, await rig.wake_ups()) == (HERE.tag, 1)
    assert (await take(rig.memory)).attempts == 1


async def test_a_worker_cancelled_while_it_takes_a_lease_leaves_its_bell(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script may have run: then the lease is held, and its bell must not be missing."""
    taken, acquire = asyncio.Event(), rig.memory.turns.acquire

    async def unanswered(conversation: Scope, known: Cursor, token: str, wake_up: str) -> None:
        await acquire(conversation, known, token, wake_up)
        taken.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(rig.memory.turns, "acquire", unanswered)
    async with rig.listening():
        await put(rig.memory, 1)
        await taken.wait()
    await rig.worker.stop(grace_s=0)
    assert (await rig.wake_ups(), await rig.waiting()) == (1, 1)


async def test_a_worker_goes_on_hearing_after_anything_unexpected(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, failures = rig.ready_queue.read, [ValueError("odd"), StoreUnavailable("away")]

    async def fail_first(most: int, block_ms: int) -> list[WakeUp]:
        if failures:
            raise failures.pop()
        return await read(most, block_ms)

    monkeypatch.setattr(rig.ready_queue, "read", fail_first)
    monkeypatch.setattr("bot.turn.worker._PAUSE_S", 0)
    async with rig.working():
        await put(rig.memory, 1)
        await rig.until_acknowledged(1)
    assert failures == []
