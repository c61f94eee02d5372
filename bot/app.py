"""The composition root: builds every part once and ties its life to the process.

Nothing else reads settings or knows how the parts fit together.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import structlog

from bot.assistant import Assistant
from bot.behaviors import behaviors_of, teaching_of
from bot.commands.access import Operators
from bot.commands.build import CommandSet, Running, build_commands
from bot.commands.buttons import Buttons
from bot.commands.export import export_file
from bot.commands.menus import descriptions, menus
from bot.commands.notices import AdminNotices
from bot.commands.receipts import Receipts
from bot.commands.sentences import Sentences
from bot.documents.formats import Formats, Limits
from bot.documents.upload import FileReader, Upload
from bot.language.catalogue import Catalogue
from bot.metrics.budget import Budget, BudgetWatch
from bot.metrics.metrics import Metrics
from bot.metrics.observers import MeteredAnswerer, MeteredRunner
from bot.metrics.page import metrics_route
from bot.metrics.prices import Prices
from bot.metrics.usage_counter import UsageRecorder
from bot.model.guarded import ModelCondition
from bot.model.models import OpenModels, open_models
from bot.runtime.background_learner import BackgroundLearner
from bot.runtime.loop_watchdog import LoopWatchdog
from bot.runtime.maintenance import Maintenance
from bot.runtime.periodic import CapacityWatch, ModelWatch, repeat
from bot.runtime.process import open_store
from bot.runtime.web import WebServer, health_routes
from bot.telegram.bot_account import BotIdentity
from bot.telegram.bot_api import TelegramClient
from bot.telegram.connection import TelegramHealth
from bot.telegram.errors import NotAccepted
from bot.telegram.intake import Backpressure, Intake, RawUpdate
from bot.telegram.polling import Poller, PollingLease
from bot.telegram.rate_limit import SendRateLimiter, share_with_workers
from bot.telegram.setup import (
    SetupPlan,
    Webhook,
    connect,
    prepare_polling,
    set_up,
    watch_webhook,
)
from bot.telegram.telegram_chat import TelegramChat
from bot.telegram.update_reader import UpdateReader
from bot.telegram.webhook import WEBHOOK_PATH, webhook_routes
from bot.turn.answer import AnswerOptions, Desks, RunAgent, TurnAnswerer
from bot.turn.deliver import Deliverer
from bot.turn.hooks import TurnHooks
from bot.turn.permits import Permits, PersonLimits, freeing_uploads
from bot.turn.quota import Allowance, RationedAnswerer
from bot.turn.runner import TurnRunner
from bot.turn.trace import Observer, watched
from bot.turn.worker import TurnWorker
from config.settings import Settings
from memory.documents.library import Library
from memory.limits.quotas import Quota
from memory.memory import Memory, MemoryOptions
from memory.queue.turns import TurnTimes
from memory.scopes.selectors import BlockWindowMessageSelector
from memory.store.append_only_file import keep_clean
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_TURNS_GRACE_S = 15
_LEARNING_GRACE_S = 2
_SECONDS_A_DAY = 86_400
_SHARE_EVERY_S = 10.0
_ERASURES_EVERY_S = 0.5
"""What any process has erased leaves the memory of every other one this soon."""


@dataclass(frozen=True, slots=True)
class Duty:
    """What a process does: take updates in and serve pages, work on turns and learning, or both."""

    takes_in: bool = True
    works: bool = True


EVERYTHING = Duty()
WEB = Duty(works=False)
WORKER = Duty(takes_in=False)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What serving is made of, once we know who we are."""

    memory: Memory
    tokens: TokenCounter
    telegram: TelegramChat
    assistant: Assistant
    hooks: TurnHooks
    running: Running
    conditions: Sequence[ModelCondition]


class App:
    """One bot in one process: settings in, a running bot out."""

    def __init__(
        self,
        settings: Settings,
        token: str,
        redis: str,
        *,
        duty: Duty = EVERYTHING,
        observer: Observer | None = None,
        models: OpenModels = open_models,
    ) -> None:
        self._settings = settings
        self._token = token
        self._redis = redis
        self._duty = duty
        self._observer = observer
        self._open_models = models
        self._metrics = Metrics()
        self._health = TelegramHealth()
        self._catalogue = Catalogue()
        self._intake: Intake | None = None

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then finish or hand over what runs.

        Raise what makes a start impossible: `StoreError`, `BadToken`, `WebhookTaken`,
        `PortUnavailable`, `UnusableSystemPrompt`, `UnusableBehavior`.
        """
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(open_store(self._redis, self._settings))
            tokens = await TokenCounter.load()
            recorder = UsageRecorder()
            models = await stack.enter_async_context(
                self._open_models(
                    self._settings, [self._metrics.model_called, recorder.model_called]
                )
            )
            memory = Memory(store, self._bot_id, tokens, models.embedder, self._memory_options())
            await memory.migrate(self._settings.document_namespaces)
            await stack.enter_async_context(recorder.writing(memory.usage))
            behaviors = behaviors_of(self._settings, memory, models.internal)
            memory.teach(teaching_of(self._settings, behaviors, models.internal))
            assistant = Assistant(self._settings, tokens, models.chat, behaviors, self._bot_id)
            address = self._settings.telegram_api_url
            client = TelegramClient(self._token, address)
            stack.push_async_callback(client.close)
            limiter = SendRateLimiter(self._settings.sends_per_second, memory.send_rates)
            telegram = TelegramChat(client, limiter)
            await stack.enter_async_context(self._web(memory))
            started = asyncio.create_task(self._introduce(client))
            if not await _first(started, stopping):
                return
            hooks = TurnHooks(behaviors)
            running = Running(started.result(), models.rest, hooks.deleting)
            conditions = models.conditions
            parts = _Parts(memory, tokens, telegram, assistant, hooks, running, conditions)
            async with self._serving(parts):
                await stopping.wait()
                log.info("stopping")

    async def _introduce(self, telegram: TelegramClient) -> BotIdentity:
        me = await connect(telegram, self._health)
        if self._polls:
            await prepare_polling(telegram, self._health, take_over=self._takes_over)
        return me

    async def accept(self, raw: RawUpdate, *, after_refusal: bool = False) -> None:
        """Take an update in; before we know who we are, Telegram has to keep it."""
        outcome = "not_taken"
        try:
            if self._intake is None:
                raise NotAccepted
            await self._intake.accept(raw, after_refusal=after_refusal)
            outcome = "taken"
        finally:
            self._metrics.updates.labels(outcome).inc()

    @asynccontextmanager
    async def _serving(self, parts: "_Parts") -> AsyncIterator[None]:
        settings, sentences = self._settings, Sentences(self._catalogue)
        memory, telegram, me = parts.memory, parts.telegram, parts.running.me
        commands = build_commands(settings, memory, telegram, sentences, parts.running)
        learner = BackgroundLearner(memory.learn)
        upload = self._upload(parts, sentences, learner)
        admins, deleting = settings.admin_user_ids, parts.hooks.deleting
        resolve = memory.mailbox.resolve
        buttons = Buttons(commands.buttons, memory.confirmations, resolve, telegram, sentences)
        allowed = settings.allowed_user_ids and settings.allowed_user_ids | admins
        reader = UpdateReader(me, frozenset(commands.handlers), allowed)
        options = AnswerOptions(self._selector(), settings.recall_k, settings.turn_timeout_s)
        quota = Quota(settings.user_turns_per_minute, settings.user_tokens_per_day)
        budget = Budget(settings.budget_per_month, Prices(settings.prices), memory.usage)
        allowance = Allowance(memory.quotas, quota, budget, admins)
        limits = PersonLimits(settings.max_turns_per_person, settings.max_uploads_per_person)
        permits = Permits(limits, memory.mailbox.wake)
        answerer = TurnAnswerer(
            self._run_agent(parts.assistant),
            Desks(commands.handlers, freeing_uploads(upload.receive, permits) if upload else None),
            sentences,
            telegram,
            parts.hooks,
            options,
        )
        deliverer = Deliverer(
            telegram,
            min(10.0, settings.lease_s / 2),
            partial(export_file, memory.exporter),
            self._metrics.observe,
        )
        rationed = RationedAnswerer(answerer, allowance, sentences)
        runner = TurnRunner(
            memory,
            parts.tokens,
            MeteredAnswerer(rationed, self._metrics),
            deliverer,
            parts.hooks,
            learner.learn,
        )
        worker = TurnWorker(
            memory,
            MeteredRunner(runner, self._metrics),
            permits,
            most=settings.max_concurrent_turns,
            lease_s=settings.lease_s,
        )
        notices = AdminNotices(Operators(memory.store, admins), telegram, sentences)
        share = partial(
            share_with_workers, telegram.limiter, memory.ready_queue(), settings.lease_s
        )
        tasks = [
            asyncio.create_task(CapacityWatch(memory.capacity, notices).run()),
            asyncio.create_task(ModelWatch(memory, notices, parts.conditions).run()),
            asyncio.create_task(BudgetWatch(budget, notices).run()),
            asyncio.create_task(repeat(share, "workers", _SHARE_EVERY_S)),
            asyncio.create_task(repeat(memory.drop_erased, "erasures", _ERASURES_EVERY_S)),
            asyncio.create_task(LoopWatchdog().run()),
        ]
        if self._duty.works:
            receipts = Receipts(memory.jobs, telegram, sentences)
            maintenance = Maintenance(memory, learner, receipts.report, deleting)
            tasks += [asyncio.create_task(worker.run()), asyncio.create_task(maintenance.run())]
        if self._settings.redis_url is None:
            tasks.append(asyncio.create_task(keep_clean(memory.client, memory.erased)))
        intake_tasks: list[asyncio.Task[None]] = []
        if self._duty.takes_in:
            backpressure = Backpressure(
                memory.client, memory.keys, settings.max_pending_conversations
            )
            self._intake = Intake(
                reader.read, memory.mailbox, buttons.press, memory.capacity.ballast, backpressure
            )
            intake_tasks = self._taking_in(memory, telegram.client, commands)
        if self._observer is not None:
            self._observer.serving(memory)
        log.info("serving", bot=me.username, polling=self._polls, works=self._duty.works)
        try:
            yield
        finally:
            self._intake = None
            await _end(intake_tasks)
            await _end(tasks)
            await buttons.stop()
            await worker.stop(_TURNS_GRACE_S)
            await learner.stop(_LEARNING_GRACE_S)

    def _taking_in(
        self, memory: Memory, telegram: TelegramClient, commands: CommandSet
    ) -> "list[asyncio.Task[None]]":
        """Start what brings updates here."""
        plan = self._plan(commands)
        tasks = [asyncio.create_task(set_up(telegram, plan, self._health))]
        if plan.webhook is None:
            lease = PollingLease(memory.poller_lease, self._settings.lease_s)
            poller = Poller(telegram, self.accept, lease, self._health, take_over=self._takes_over)
            tasks.append(asyncio.create_task(poller.run()))
        else:
            watching = watch_webhook(telegram, plan.webhook, self._health)
            tasks.append(asyncio.create_task(watching))
        return tasks

    @asynccontextmanager
    async def _web(self, memory: Memory) -> AsyncIterator[None]:
        settings, secret = self._settings, self._settings.webhook_secret
        token = settings.metrics_token
        routes = [
            *health_routes(
                memory.client,
                self._health,
                has_webhook=self._has_webhook,
                wait_replicas=settings.intake_wait_replicas,
            ),
            metrics_route(
                self._metrics,
                memory,
                token.get_secret_value() if token else None,
                on_platform=settings.platform is not None,
            ),
        ]
        if self._has_webhook and secret is not None:
            routes += webhook_routes(secret.get_secret_value(), self.accept, self._health)
        # A bot that somebody watches runs in the playground, which only this machine may reach.
        host = "0.0.0.0" if self._observer is None else "127.0.0.1"  # noqa: S104 - a platform's router comes from outside
        server = WebServer(routes, settings.port, host)
        task = asyncio.create_task(server.run())
        log.info("listening", port=server.port)
        try:
            yield
        finally:
            server.stop()
            await task

    @property
    def _polls(self) -> bool:
        return self._duty.takes_in and self._settings.webhook_url is None

    @property
    def _takes_over(self) -> bool:
        return self._settings.take_over_webhook == "yes"

    @property
    def _has_webhook(self) -> bool:
        return self._duty.takes_in and self._settings.webhook_url is not None

    @property
    def _bot_id(self) -> int:
        return int(self._token.partition(":")[0])

    def _run_agent(self, assistant: Assistant) -> RunAgent:
        if self._observer is None:
            return assistant.run
        return watched(assistant.run, assistant.prompt, self._observer)

    def _plan(self, commands: CommandSet) -> SetupPlan:
        settings = self._settings
        webhook = None
        if settings.webhook_url is not None and settings.webhook_secret is not None:
            address = settings.webhook_url.rstrip("/") + WEBHOOK_PATH
            webhook = Webhook(address, settings.webhook_secret.get_secret_value())
        return SetupPlan(
            webhook,
            menus(self._catalogue, commands.listed, settings.admin_user_ids),
            descriptions(self._catalogue),
        )

    def _upload(
        self, parts: _Parts, sentences: Sentences, learner: BackgroundLearner
    ) -> Upload | None:
        """Return what stores files; `None` if this bot takes none."""
        settings, memory = self._settings, parts.memory
        if settings.documents == "off":
            return None
        max_bytes = int(settings.max_document_mb * 2**20)
        reader = FileReader(parts.telegram, Formats(Limits()), memory.tokens, max_bytes)
        library = Library(memory.store, memory.scopes)
        return Upload(reader, library, memory.scopes, sentences, learner.learn)

    def _selector(self) -> BlockWindowMessageSelector:
        return BlockWindowMessageSelector.in_quarters(
            self._settings.window_messages, self._settings.window_tokens
        )

    def _memory_options(self) -> MemoryOptions:
        settings = self._settings
        return MemoryOptions(
            ttl_s=settings.memory_ttl_days * _SECONDS_A_DAY,
            tail=2 * settings.window_messages,
            cache_bytes=settings.cache_mb * 2**20,
            times=TurnTimes(int(settings.lease_s * 1000), int(settings.coalesce_s * 1000)),
            redis_bytes=(settings.redis_memory_mb or 0) * 2**20,
            wait_replicas=settings.intake_wait_replicas,
        )


async def _first(task: "asyncio.Task[BotIdentity]", stopping: asyncio.Event) -> bool:
    """Wait for the task; false when the process is to stop before it is done."""
    stop = asyncio.create_task(stopping.wait())
    await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not task.done():
        await _end([task])
        return False
    return True


async def _end(tasks: "list[asyncio.Task[None]] | list[asyncio.Task[BotIdentity]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
