"""The composition root: builds every part once, starts it and stops it.

Only this file and the files beside it know the settings and how the parts fit together.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

import structlog

from bot.assistant import Assistant, assistant_of
from bot.behaviors import learning_config, open_behaviors
from bot.commands.at_once import AtOnce
from bot.commands.build import Running, build_commands
from bot.commands.buttons import Buttons
from bot.commands.menus import descriptions, menus
from bot.commands.receipts import Receipts
from bot.commands.sentences import Sentences
from bot.costs.usage_counter import UsageRecorder
from bot.language.catalogue import Catalogue
from bot.live.live_turns import ConversationNames, LiveTurns
from bot.metrics.metrics import Metrics
from bot.metrics.monitoring import Watcher, open_traces
from bot.model.models import Models, OpenModels, open_models, secret_of
from bot.pages import page_routes
from bot.runtime.after_learning import after_learning, before_erasing
from bot.runtime.background_learner import BackgroundLearner
from bot.runtime.maintenance import Maintenance
from bot.runtime.process import (
    EVERYTHING,
    Duty,
    end_tasks,
    is_done_before,
    memory_options,
    open_store,
)
from bot.runtime.reloading import Reloading
from bot.runtime.web import WebServer
from bot.telegram.bot_account import BotIdentity
from bot.telegram.bot_api import TelegramClient
from bot.telegram.connection import Backoff, TelegramHealth
from bot.telegram.errors import NotAccepted
from bot.telegram.intake import Backpressure, Intake, RawUpdate
from bot.telegram.polling import Poller, PollingLease
from bot.telegram.rate_limit import SendRateLimiter
from bot.telegram.setup import (
    SetupPlan,
    connect,
    prepare_polling,
    set_up,
    watch_webhook,
    webhook_of,
)
from bot.telegram.telegram_chat import TelegramChat
from bot.telegram.update_reader import UpdateReader
from bot.telegram.webhook import webhook_routes
from bot.turn.observers import BotServing, Observer, UpdateArrived, UpdateHandled, all_of
from bot.turns import TurnBuilder
from bot.watches import announcing_of, meet, start_watches
from config.settings import Settings
from memory.memory import Memory
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_TURNS_GRACE_S = 15
_LEARNING_GRACE_S = 2


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
        self._observe: Observer = self._metrics.observe
        self._live = LiveTurns(ConversationNames(self._token))
        self._health = TelegramHealth()
        self._catalogue = Catalogue()
        self._sentences = Sentences(self._catalogue, settings.timezone)
        self._intake: Intake | None = None
        self._takes_over = settings.take_over_webhook == "yes"
        self._webhook = webhook_of(settings) if duty.takes_in else None

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then finish the running turns or hand them over.

        Raise an error that prevents the start: `StoreError`, `BadToken`, `WebhookTaken`,
        `PortUnavailable`, `UnusableSystemPrompt`, `UnusableClass`.
        """
        settings, bot_id = self._settings, int(self._token.partition(":")[0])
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(open_store(self._redis, settings))
            tokens = await TokenCounter.load()
            recorder = UsageRecorder()
            traces = stack.enter_context(open_traces(settings, self._live.names.name))
            watching: list[Watcher] = [self._metrics, self._live, *traces]
            self._observe = all_of(each.observe for each in watching)
            observers = [*(each.model_called for each in watching), recorder.model_called]
            models = await stack.enter_async_context(self._open_models(settings, observers))
            memory = Memory(store, bot_id, tokens, models.embedder, memory_options(settings))
            await memory.migrate(settings.namespaces)
            await stack.enter_async_context(recorder.writing(memory.usage))
            behaviors = await open_behaviors(
                settings, memory, models.internal, self._metrics.domain_refused
            )
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
            async with self._serving(memory, chat, assistant, running, models):
                await stopping.wait()
                log.info("stopping")

    async def accept(self, raw: RawUpdate, *, after_refusal: bool = False) -> None:
        """Take an update in; raise `NotAccepted` while the bot does not know its own identity."""
        outcome = "refused"
        self._observe(UpdateArrived())
        try:
            if self._intake is None:
                raise NotAccepted
            await self._intake.accept(raw, after_refusal=after_refusal)
            outcome = "accepted"
        finally:
            self._observe(UpdateHandled(outcome))

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
        models: Models,
    ) -> AsyncIterator[None]:
        """Answer people while the block lasts."""
        settings, sentences = self._settings, self._sentences
        learner = BackgroundLearner(memory.learn, after_learning(memory, chat), self._observe)
        # The playground has settings of its own, which no file changes.
        env_file = ".env" if self._observer is None else ""
        reloading = Reloading(settings, memory, assistant.use_system_prompt, env_file)
        deleting = before_erasing(memory, chat, running.deleting)
        running = replace(running, deleting=deleting, reload_all=reloading.reload_all)
        commands = build_commands(settings, memory, chat, sentences, running)
        observe = all_of(filter(None, [self._observe, self._observer]))
        observe(BotServing(memory, assistant.prompt))
        turns = TurnBuilder(settings, memory, chat, sentences, observe)
        worker = turns.worker(assistant, commands.handlers, learner.learn, models.voices)
        resolve = memory.mailbox.resolve
        buttons = Buttons(commands.buttons, memory.confirmations, resolve, chat, sentences)
        tasks = start_watches(settings, memory, chat, sentences, models.conditions)
        report = partial(self._live.report, self._duty.name, memory, models.conditions)
        running_on = memory.reports.keep_writing(report), reloading.run()
        tasks += map(asyncio.create_task, running_on)
        if self._duty.works:
            receipts = Receipts(memory.jobs, chat, sentences)
            maintenance = Maintenance(memory, learner, receipts.report, running.deleting)
            announcing = announcing_of(settings, memory, chat, sentences)
            work = worker.run(), maintenance.run(), turns.due_reminders().run(), announcing.run()
            tasks += map(asyncio.create_task, work)
        taking_in: list[asyncio.Task[None]] = []
        if self._duty.takes_in:
            strangers = commands.strangers
            serves = strangers.admission.serves
            reader = UpdateReader(running.me, frozenset(commands.handlers), serves)
            max_waiting = settings.max_pending_conversations
            backpressure = Backpressure(memory.client, memory.keys, max_waiting)
            at_once = AtOnce(buttons.press, memory, chat, commands.edits.take, strangers)
            ballast = memory.capacity.ballast
            self._intake = Intake(reader.read, memory.mailbox, at_once.act, ballast, backpressure)
            menu = menus(self._catalogue, commands.listed, settings.admin_user_ids)
            plan = SetupPlan(self._webhook, menu, descriptions(self._catalogue))
            taking_in = self._taking_in(memory, chat.client, plan) + meet(strangers)
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
        """Serve the pages and the webhook while the block lasts."""
        settings = self._settings
        routes = page_routes(settings, memory, self._health, self._metrics, self._live)
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
