"""One start of the bot, built from the product's own classes as `bot.app` builds it.

Only what it is connected to is simulated: store, Telegram, model and embedder.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bot.assistant import build_commands
from bot.commands.erasing import Receipts
from bot.commands.fact_edits import FactEdits
from bot.commands.immediate import Buttons, ImmediateActions
from bot.costs import Budget
from bot.feature import Feature, Services
from bot.features.reminders.due import DueReminders
from bot.runtime.background_learner import BackgroundLearner
from bot.runtime.maintenance import Maintenance
from bot.telegram.bot_api import BotIdentity
from bot.telegram.intake import Backpressure, Intake
from bot.telegram.updates import Update
from bot.turn.agent_step import AgentStep
from bot.turn.answer import CommandStep, TypingIndicator
from bot.turn.load import ContextLoader
from bot.turn.permits import Permits, QuotaStep
from bot.turn.revision import RevisionStep
from bot.turn.turn import TurnRunner
from bot.turn.worker import TurnWorker
from memory.behaviors.behavior import AIContextBehaviorManager
from memory.erasure.jobs import FinishedJob
from memory.memory import Memory, MemoryOptions
from memory.queue.turn_store import TurnTimes
from memory.scopes.selectors import BlockWindowMessageSelector
from memory.search.embeddings import EmbeddingsUnavailable, Vectors
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.bot.features.services import models_of
from tests.bot.turn.plain_assistant import plain_assistant
from tests.lab.scripted_models import ScriptedChatModel, ScriptedInternalModel, Tape
from tests.lab.simulator.audit import Auditor
from tests.lab.simulator.audit_turns import COALESCE_MS, MAX_COALESCE_MS
from tests.lab.simulator.chance import Chance
from tests.lab.simulator.loop import Died, Process, VirtualLoop
from tests.lab.simulator.telegram import TelegramClient
from tests.lab.simulator.turn import (
    NamingAnswerer,
    NamingDeliverer,
    NamingGiveUp,
    NamingRunner,
    NamingWorkLoop,
    SimulatedModel,
    ignore,
    remembered_sentences,
)
from tests.settings import Settings

BOT_ID = 42
LEASE_S = 3.0  # a tenth of a real lease, so that less time has to be simulated after a crash

OPTIONS = MemoryOptions(
    ttl_s=30 * 86_400,
    tail=12,
    cache_bytes=1_000_000,
    times=TurnTimes(int(LEASE_S * 1000), COALESCE_MS, MAX_COALESCE_MS),
    shares_groups=False,
)
_GRACE_S = 1.5
_ME = BotIdentity(BOT_ID, "bot", "Bot", can_read_all_group_messages=True)
_SETTINGS = Settings(memory_ttl_days=30)
_SELECTOR = BlockWindowMessageSelector.in_quarters(6, 400)


@dataclass(frozen=True, slots=True)
class Connections:
    """What one start of the bot is connected to."""

    process: Process
    client: RedisClient
    telegram: TelegramClient
    chance: Chance
    auditor: Auditor
    loop: VirtualLoop
    tokens: TokenCounter
    reminds: bool = False
    has_edits: bool = True


def value_of(raw: Mapping[str, object]) -> Update:
    """Return the typed update that a simulated raw update contains."""
    return raw["value"]  # type: ignore[return-value]  # people put it there


@dataclass(frozen=True, slots=True)
class SimulatedEmbedder:
    """Makes one vector for each text, or fails."""

    process: Process
    chance: Chance
    fingerprint: str = "simulated 4"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(n, 4) float32`, one unit row for each text."""
        fate = self.chance.fate("embedder")
        await self.process.travel(self.chance.random.uniform(0, 1))
        if fate == "crash":
            self.process.crash()
            raise Died
        if fate == "hangs":
            await self.process.travel(self.chance.random.uniform(1, 6))
        if fate == "fails":
            raise EmbeddingsUnavailable
        rows = np.zeros((len(texts), 4), np.float32)
        rows[np.arange(len(texts)), [len(text) % 4 for text in texts]] = 1
        return rows


class SimulatedBot:
    """A bot that accepts updates and works on turns and jobs."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        telegram, chance = connections.telegram, connections.chance
        sentences = remembered_sentences()
        embedder = SimulatedEmbedder(connections.process, chance)
        client, tokens = connections.client, connections.tokens
        self.memory = memory = Memory(client, BOT_ID, tokens, embedder, OPTIONS)
        behaviors = AIContextBehaviorManager([], time_limit_s=1)
        deleting = behaviors.on_conversation_deleting
        tape = Tape(lambda: 0)
        models = models_of(ScriptedInternalModel(tape, 0), ScriptedChatModel(tape, 0))
        services = Services.of(_SETTINGS, memory, telegram, sentences, models)
        commands = build_commands(replace(services, me=lambda: _ME), deleting)
        edits = FactEdits(memory, services.access, telegram, sentences)
        buttons = Buttons(commands.buttons, memory, telegram, sentences)
        self._report = Receipts(memory.jobs, telegram, sentences).report
        self._learner = BackgroundLearner(memory.learn)
        at_work = TypingIndicator(telegram, timeout_s=20)
        reminds, has_edits = connections.reminds, connections.has_edits
        model = SimulatedModel(connections.process, chance, reminds, has_edits)
        # Nobody has a quota.
        quota = QuotaStep(Budget(_SETTINGS, memory.usage, memory.quotas), sentences)
        tasks = DueReminders(memory.work, sentences)
        added = (memory.questions, [tasks.below], [tasks.finish])
        loader = ContextLoader(plain_assistant(behaviors, _SELECTOR, model.run), telegram, 2)
        steps = [
            RevisionStep(memory, telegram, quota, sentences, self._learner.learn).answer,
            CommandStep(commands.answer, sentences, services.admission).answer,
            tasks.check,
            AgentStep(loader, sentences, at_work, ignore, *added).answer,
        ]
        self._turn = TurnRunner(
            memory.turns,
            memory.histories,
            NamingAnswerer(steps, connections.auditor, chance),
            NamingGiveUp(memory.dead_letters, connections.auditor).give_up,
            NamingDeliverer(telegram, LEASE_S / 2, connections.auditor.records),
            behaviors,
            self._learner.learn,
            ignore,
            memory.work,
        )
        named = NamingRunner(self._turn, connections.auditor.records, chance)
        # So low that turns are deferred in most schedules.
        permits = Permits(1, memory.mailbox.wake)
        self._ready_queue = memory.ready_queue()
        queue, histories = memory.turns, memory.histories
        self._worker = TurnWorker(self._ready_queue, queue, histories, permits, named.run, 4)
        deliverer = NamingDeliverer(telegram, LEASE_S / 2, connections.auditor.records)
        features = [Feature(name="tasks", work=[tasks])]
        self._work = NamingWorkLoop(memory.work, memory.scopes, features, deliverer, LEASE_S)
        self._work.auditor = connections.auditor
        self._maintenance = Maintenance(memory, self._learner, self._job_finished, deleting)
        immediate = ImmediateActions(buttons.press, edits.take, memory.mailbox, telegram, {})
        ballast, now = memory.capacity.ballast, connections.loop.time
        backpressure = Backpressure(memory.client, memory.keys, ballast, 50, now)
        self.intake = Intake(value_of, memory.mailbox, immediate.act, backpressure)

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until `stopping` is set, then finish or hand over running turns."""
        work = [self._worker.run(), self._maintenance.run()]
        if self._connections.reminds:
            work.append(self._work.run())
        tasks = list(map(asyncio.create_task, work))
        await stopping.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._worker.stop(_GRACE_S)
        await self._learner.stop(_GRACE_S)

    async def _job_finished(self, finished: FinishedJob) -> None:
        if finished.job.kind == "forget":
            job = finished.job
            self._connections.auditor.forgotten(job.target, job.cut_update, job.cut_at)
        await self._report(finished)
