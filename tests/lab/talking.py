"""One private conversation with the product's own parts in this process, in simulated time.

From the mailbox to the commit everything is the product's, except the models and Telegram. Between
two messages simulated time passes, and learning that falls due meanwhile runs as maintenance would
run it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import perf_counter

from bot.assistant import assistant_of, behaviors_of, turn_worker
from bot.reply.parts import Part
from bot.runtime.background_learner import BackgroundLearner
from bot.telegram.chat import Destination
from bot.telegram.updates import IncomingMessage, Sender, to_bytes
from memory.memory import Memory, MemoryOptions
from memory.queue.mailbox import Entry
from memory.queue.open_turn import OpenTurn
from memory.queue.turn_store import TurnTimes
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.bot.features.services import models_of, services_of
from tests.lab.scripted_models import ScriptedChatModel, ScriptedInternalModel, Tape
from tests.lab.sessions import Exchange
from tests.lab.simulated_time import SimulatedClock, simulated
from tests.memory.words_embedder import WordsEmbedder
from tests.quiet_chat import QuietChat, no_command
from tests.servers.word_vectors import DIMENSIONS
from tests.settings import Settings

MODEL_S = 0.02  # the latency of every model

BOT, PERSON = 1, 7_001
HERE = Scope.of_chat(PERSON)
TTL_S = 365 * 86_400
_SENDER = Sender(PERSON, "Clara Lindqvist", "Clara", "Lindqvist")
_AT_ONCE = TurnTimes(coalesce_ms=0, max_coalesce_ms=0)


class Telegram(QuietChat):
    """Accepts every part and notes when the last one came."""

    def __init__(self) -> None:
        super().__init__()
        self.last_id = 1_000_000
        self.last_at = 0.0

    async def send(self, to: Destination, part: Part, timeout_s: float = 15.0) -> int:
        del to, part, timeout_s
        self.last_at = perf_counter()
        self.last_id += 1
        return self.last_id


@dataclass(frozen=True, slots=True)
class Rig:
    """Everything that does not belong to the product."""

    clock: SimulatedClock
    tape: Tape
    model: ScriptedChatModel
    telegram: Telegram


class Talk:
    """A running conversation."""

    def __init__(self, memory: Memory, settings: Settings, rig: Rig) -> None:
        self.memory = memory
        self._rig = rig
        models = models_of(ScriptedInternalModel(rig.tape, MODEL_S), rig.model)
        services = services_of(memory, settings, rig.telegram, models=models)
        services = replace(services, learn=self._learn)
        behaviors = behaviors_of(services)
        memory.enable_learning(behaviors.behaviors, models.internal)
        assistant = assistant_of(services, behaviors)
        self._worker = turn_worker(services, assistant, no_command)
        self._learner = BackgroundLearner(memory.learn)
        self._learns_in_background = False

    async def exchange(self, exchange: Exchange) -> float:
        """Let the pause pass, then run a turn and the learning after it.

        Return the seconds from the message's arrival until its answer was sent.
        """
        await self._rest(self._rig.clock.now + exchange.pause_s)
        seconds = await self._turn(exchange)
        await self.memory.learn(HERE)
        return seconds

    async def in_a_row(self, exchanges: Sequence[Exchange]) -> list[float]:
        """Run turns without pauses while learning runs in the background; return their seconds."""
        self._learns_in_background = True
        seconds = []
        for exchange in exchanges:
            self._rig.clock.until(self._rig.clock.now + 1)
            seconds.append(await self._turn(exchange))
        await self._learner.stop(10)
        self._learns_in_background = False
        return seconds

    async def finish(self) -> None:
        """Let a day pass, so that everything is learned."""
        await self._rest(self._rig.clock.now + 86_400)

    def _learn(self, conversation: Scope) -> None:
        if self._learns_in_background:
            self._learner.learn(conversation)

    async def _turn(self, exchange: Exchange) -> float:
        tape, now = self._rig.tape, self._rig.clock.now
        tape.turn += 1
        said = IncomingMessage(
            update_id=tape.turn,
            chat_id=PERSON,
            topic_id=0,
            is_group=False,
            message_id=tape.turn,
            sent_at=int(now),
            sender=_SENDER,
            kind="text",
            text=exchange.said,
        )
        self._rig.model.answer = exchange.answer
        began = perf_counter()
        entry = Entry(said.update_id, PERSON, is_alone=False, body=to_bytes(said))
        await self.memory.mailbox.put(HERE, entry)
        turn = await self.memory.turns.acquire(HERE, self.memory.histories.cursor(HERE))
        assert isinstance(turn, OpenTurn), turn
        await self._worker.run_turn(turn)
        return self._rig.telegram.last_at - began

    async def _rest(self, until: float) -> None:
        """Let time pass, and learn what falls due meanwhile."""
        learning = self.memory.keys.learning
        while True:
            due = await self.memory.client.call("ZRANGE", learning, 0, 0, "WITHSCORES")
            if not due or due[0][1] > until:
                break
            self._rig.clock.until(due[0][1])
            for conversation in await self.memory.sweep.take_late_learning(1):
                await self.memory.learn(conversation)
        self._rig.clock.until(until)


@asynccontextmanager
async def talking(
    settings: Settings, tokens: TokenCounter, redis: str
) -> AsyncIterator[tuple[Talk, Tape]]:
    """Yield a conversation and its tape; inside the block time is simulated."""
    clock = SimulatedClock()
    tape = Tape(clock)
    client = await RedisClient.open(redis)
    options = MemoryOptions(
        ttl_s=TTL_S, tail=2 * settings.window_messages, cache_bytes=64 * 2**20, times=_AT_ONCE
    )
    memory = Memory(client, BOT, tokens, WordsEmbedder("hashed-words", DIMENSIONS), options)
    rig = Rig(clock, tape, ScriptedChatModel(tape, MODEL_S), Telegram())
    try:
        with simulated(clock):
            yield Talk(memory, settings, rig), tape
    finally:
        await client.close()
