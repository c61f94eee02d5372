"""The composition root: builds every part once, starts it and stops it.

Only this file and the files beside it know the settings and how the parts fit together.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import structlog

from bot.assistant import Assistant, assistant_of
from bot.behaviors import behaviors_of, learning_config
from bot.commands.at_once import AtOnce
from bot.commands.build import Running, build_commands
from bot.commands.buttons import Buttons
from bot.commands.menus import descriptions, menus
from bot.commands.receipts import Receipts
from bot.commands.sentences import Sentences
from bot.costs.usage_counter import UsageRecorder
from bot.language.catalogue import Catalogue
from bot.metrics.metrics import Metrics
from bot.metrics.page import metrics_route
from bot.model.guarded import ModelCondition
from bot.model.models import OpenModels, open_models, secret_of
from bot.runtime.after_learning import after_learning, before_erasing
from bot.runtime.background_learner import BackgroundLearner
from bot.runtime.maintenance import Maintenance
from bot.runtime.process import end_tasks, is_done_before, memory_options, open_store
from bot.runtime.web import WebServer, health_routes
from bot.telegram.bot_account import BotIdentity
from bot.telegram.bot_api import TelegramClient
from bot.telegram.connection import Backoff, TelegramHealth
from bot.telegram.errors import NotAccepted
from bot.telegram.intake import Backpressure, Intake, RawUpdate
from bot.telegram.polling import Poller, PollingLease
from bot.telegram.rate_limit import SendRateLimiter
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
from bot.turn.observers import BotServing, Observer, all_of
from bot.turns import TurnBuilder
from bot.watches import start_watches
from config.settings import Settings
from memory.memory import Memory
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_TURNS_GRACE_S = 15
_LEARNING_GRACE_S = 2


@dataclass(frozen=True, slots=True)
class Duty:
    """The work of a process: take updates in and serve pages, run turns and learn, or both."""

    takes_in: bool = True
    works: bool = True


EVERYTHING = Duty()
WEB = Duty(works=False)
WORKER = Duty(takes_in=False)


class App:
    """One bot in one process, built from the settings.

    With an `observer` the bot runs in the playground, and only this machine can open its pages.
    """

    def __init__(
        self,
        settings: Settings,
        redis: str,
        *,
        duty: Duty = EVERYTHING,
        observer: Observer | None = None,
        models: OpenModels = open_models,
    ) -> None:
        self._settings = settings
        self._token = secret_of(settings.telegram_bot_token) or ""
        self._redis = redis
        self._duty = duty
        self._observer = observer
        self._open_models = models
        self._metrics = Metrics()
        self._health = TelegramHealth()
        self._catalogue = Catalogue()
        self._sentences = Sentences(self._catalogue, settings.timezone)
        self._intake: Intake | None = None
        self._takes_over = settings.take_over_webhook == "yes"
        self._webhook = webhook_of(settings) if duty.takes_in else None

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then finish the running turns or hand them over.

        Raise an error that prevents the start: `StoreError`, `BadToken`, `WebhookTaken`,
        `PortUnavailable`, `UnusableSystemPrompt`, `UnusableBehavior`.
        """
        settings, bot_id = self._settings, int(self._token.partition(":")[0])
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(open_store(self._redis, settings))
            tokens = await TokenCounter.load()
            recorder = UsageRecorder()
            observers = [self._metrics.model_called, recorder.model_called]
            models = await stack.enter_async_context(self._open_models(settings, observers))
            memory = Memory(store, bot_id, tokens, models.embedder, memory_options(settings))
            await memory.migrate(settings.document_namespaces)
            await stack.enter_async_context(recorder.writing(memory.usage))
            behaviors = behaviors_of(settings, memory, models.internal)
            memory.enable_learning(learning_config(settings, behaviors, models.internal))
            assistant = assistant_of(settings, tokens, models.chat, behaviors, bot_id)
            client = TelegramClient(self._token, settings.telegram_api_url)
            stack.push_async_callback(client.close)
            limiter = SendRateLimiter(settings.sends_per_second, memory.send_rates)
            await stack.enter_async_context(self._web(memory))
            started = asyncio.create_task(self._introduce(client))
            if not await is_done_before(stopping, started):
                return
            running = Running(started.result(), models.breaker, behaviors.on_conversation_deleting)
            chat = TelegramChat(client, limiter, sends_rich=settings.rich_messages == "auto")
            async with self._serving(memory, chat, assistant, running, models.conditions):
                await stopping.wait()
                log.info("stopping")

    async def accept(self, raw: RawUpdate, *, after_refusal: bool = False) -> None:
        """Take an update in; raise `NotAccepted` while the bot does not know its own identity."""
        outcome = "refused"
        try:
            if self._intake is None:
                raise NotAccepted
            await self._intake.accept(raw, after_refusal=after_refusal)
            outcome = "accepted"
        finally:
            self._metrics.updates.labels(outcome).inc()

    async def _introduce(self, telegram: TelegramClient) -> BotIdentity:
        me = await connect(telegram, self._health)
        if self._duty.takes_in and self._webhook is None:
            await prepare_polling(telegram, self._health, take_over=self._takes_over)
        return me

    @asynccontextmanager
    async def _serving(
        self,
        memory: Memory,
        chat: TelegramChat,
        assistant: Assistant,
        running: Running,
        conditions: Sequence[ModelCondition],
    ) -> AsyncIterator[None]:
        """Answer people while the block lasts."""
        settings, sentences = self._settings, self._sentences
        learner = BackgroundLearner(memory.learn, after_learning(memory, chat))
        running = replace(running, deleting=before_erasing(memory, chat, running.deleting))
        commands = build_commands(settings, memory, chat, sentences, running)
        observe: Observer = self._metrics.observe
        if self._observer is not None:
            observe = all_of([observe, self._observer])
            observe(BotServing(memory, assistant.prompt))
        turns = TurnBuilder(settings, memory, chat, sentences, observe)
        worker = turns.worker(assistant, commands.handlers, learner.learn)
        resolve = memory.mailbox.resolve
        buttons = Buttons(commands.buttons, memory.confirmations, resolve, chat, sentences)
        tasks = start_watches(settings, memory, chat, sentences, conditions)
        if self._duty.works:
            receipts = Receipts(memory.jobs, chat, sentences)
            maintenance = Maintenance(memory, learner, receipts.report, running.deleting)
            work = worker.run(), maintenance.run(), turns.due_reminders().run()
            tasks += map(asyncio.create_task, work)
        taking_in: list[asyncio.Task[None]] = []
        if self._duty.takes_in:
            allowed = settings.allowed_user_ids and (
                settings.allowed_user_ids | settings.admin_user_ids
            )
            reader = UpdateReader(running.me, frozenset(commands.handlers), allowed)
            max_waiting = settings.max_pending_conversations
            backpressure = Backpressure(memory.client, memory.keys, max_waiting)
            at_once = AtOnce(buttons.press, memory, chat, commands.edits.take)
            ballast = memory.capacity.ballast
            self._intake = Intake(reader.read, memory.mailbox, at_once.act, ballast, backpressure)
            menu = menus(self._catalogue, commands.listed, settings.admin_user_ids)
            plan = SetupPlan(self._webhook, menu, descriptions(self._catalogue))
            taking_in = self._taking_in(memory, chat.client, plan)
        polls = self._duty.takes_in and self._webhook is None
        log.info("serving", bot=running.me.username, polling=polls, works=self._duty.works)
        try:
            yield
        finally:
            self._intake = None
            await end_tasks(taking_in)
            await end_tasks(tasks)
            await buttons.stop()
            await worker.stop(_TURNS_GRACE_S)
            await learner.stop(_LEARNING_GRACE_S)

    def _taking_in(
        self, memory: Memory, telegram: TelegramClient, plan: SetupPlan
    ) -> "list[asyncio.Task[None]]":
        """Start the tasks that receive updates."""
        tasks = [asyncio.create_task(set_up(telegram, plan, self._health))]
        if self._webhook is None:
            lease = PollingLease(memory.poller_lease, self._settings.lease_s)
            backoff = Backoff("poll", self._health)
            poller = Poller(telegram, self.accept, lease, backoff, take_over=self._takes_over)
            tasks.append(asyncio.create_task(poller.run()))
        else:
            tasks += [asyncio.create_task(watch_webhook(telegram, self._webhook, self._health))]
        return tasks

    @asynccontextmanager
    async def _web(self, memory: Memory) -> AsyncIterator[None]:
        """Serve health, metrics and the webhook while the block lasts."""
        settings, has_webhook = self._settings, self._webhook is not None
        replicas = settings.intake_wait_replicas
        routes = health_routes(
            memory.client, self._health, has_webhook=has_webhook, wait_replicas=replicas
        )
        token, on_platform = secret_of(settings.metrics_token), settings.platform is not None
        routes.append(metrics_route(self._metrics, memory, token, on_platform=on_platform))
        if self._webhook is not None:
            routes += webhook_routes(self._webhook.secret, self.accept, self._health)
        host = "0.0.0.0" if self._observer is None else "127.0.0.1"  # noqa: S104 - a platform's router calls from outside
        server = WebServer(routes, settings.port, host)
        task = asyncio.create_task(server.run())
        log.info("listening", port=server.port)
        try:
            yield
        finally:
            server.stop()
            await task


def webhook_of(settings: Settings) -> Webhook | None:
    """Return where Telegram delivers updates, or None if the bot polls."""
    if settings.webhook_url is None or settings.webhook_secret is None:
        return None
    address = settings.webhook_url.rstrip("/") + WEBHOOK_PATH
    return Webhook(address, settings.webhook_secret.get_secret_value())
