"""The composition root: builds every part once, starts it and stops it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog

from bot.assistant import assistant_of, behaviors_of, build_commands, turn_worker
from bot.commands.command_set import CommandSet
from bot.commands.erasing import Receipts
from bot.commands.general import descriptions, menus
from bot.commands.immediate import Buttons, ImmediateActions
from bot.commands.sentences import Sentences
from bot.costs import UsageRecorder
from bot.feature import Services
from bot.features import open_features
from bot.language.catalogue import Catalogue
from bot.model.models import OpenModels, open_models
from bot.probe import refuse_unfit
from bot.runtime.background_learner import AfterLearning, BackgroundLearner
from bot.runtime.logs import short_name
from bot.runtime.maintenance import Maintenance, repeat, watches
from bot.runtime.process import EVERYTHING, Duty, is_done_before, memory_options, open_store
from bot.runtime.web import WebServer, health_routes
from bot.runtime.work import WorkLoop
from bot.telegram.bot_api import TelegramClient
from bot.telegram.connection import TelegramHealth
from bot.telegram.errors import NotAccepted
from bot.telegram.intake import Backpressure, Intake, RawUpdate
from bot.telegram.rate_limit import SendRateLimiter, SendRates, share_with_workers
from bot.telegram.telegram import HttpTelegram, SetupPlan, Telegram, webhook_of, webhook_routes
from bot.telegram.telegram_chat import TelegramChat
from bot.telegram.update_reader import UpdateReader
from bot.turn.deliver import Deliverer
from bot.turn.load import Assistant
from bot.turn.observers import BotServing, Observer, UpdateArrived, UpdateHandled, all_of
from config.settings import Settings
from config.values import secret_of
from memory.behaviors.context import CallContext
from memory.memory import Memory
from memory.store.tasks import end_tasks
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_TURNS_GRACE_S = 12
_LEARNING_GRACE_S = 2
_LOAD_AFTER_S = 0.5  # the first poll goes out first; a call that comes sooner loads the SDK itself


@asynccontextmanager
async def open_telegram(
    settings: Settings, memory: Memory, health: TelegramHealth
) -> AsyncIterator[Telegram]:
    """Give the Bot API, with this process's part of the rate."""
    client = TelegramClient(secret_of(settings.telegram_bot_token) or "", settings.telegram_api_url)
    limiter = SendRateLimiter(settings.sends_per_second, SendRates(memory.store))
    chat = TelegramChat(client, limiter)
    lease = memory.store.lease(memory.keys.poller, int(settings.lease_s * 1000))
    share = partial(share_with_workers, limiter, memory.ready_queue(), settings.lease_s)
    sharing = asyncio.create_task(repeat(share, "workers", every_s=10.0))
    try:
        yield HttpTelegram(client, chat, health, lease, settings.take_over_webhook == "yes")
    finally:
        await end_tasks([sharing])
        await client.close()


@dataclass(eq=False)
class App:
    """One bot in one process, built from the settings.

    With an `observer` it runs in the playground, and only this machine can open its pages.
    """

    settings: Settings
    redis: str
    duty: Duty = EVERYTHING
    models: OpenModels = open_models
    telegram: Callable[
        [Settings, Memory, TelegramHealth], AbstractAsyncContextManager[Telegram]
    ] = open_telegram  # keeps its `TelegramHealth` up to date
    observer: Observer | None = None

    def __post_init__(self) -> None:
        self._observers: list[Observer] = []  # filled when the features are made
        self._observe: Observer = all_of(self._observers)
        self._health = TelegramHealth()
        self._intake: Intake | None = None
        self._webhook = webhook_of(self.settings) if self.duty.takes_in else None
        self._polls = self.duty.takes_in and self._webhook is None

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then finish the running turns or hand them over.

        Raise an error that prevents the start: `StoreError`, `BadToken`, `WebhookTaken`,
        `PortUnavailable`, `UnusableSystemPrompt`, `UnusableClass`.
        """
        settings = self.settings
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            store = await enter(open_store(self.redis, settings))
            await refuse_unfit(store, self.redis)
            recorder = UsageRecorder()
            models = await enter(self.models(settings, [recorder.model_called, self._observe]))
            tokens, options = TokenCounter(), memory_options(settings)
            memory = Memory(store, settings.bot_id, tokens, models.embedder, options)
            await memory.take_layout()
            await enter(recorder.writing(memory.usage))
            telegram = await enter(self.telegram(settings, memory, self._health))
            learned: list[AfterLearning] = []
            learner = BackgroundLearner(memory.learn, learned, self._observe)
            sentences = Sentences(Catalogue(), settings.timezone)
            services = replace(
                Services.of(settings, memory, telegram.chat, sentences, models),
                learn=learner.learn,
                observe=self._observe,
                env_file="" if self.observer else ".env",
                me=self._health.account,
                name_of=partial(short_name, secret_of(settings.telegram_bot_token) or ""),
                takes_in=self.duty.takes_in,
                works=self.duty.works,
                closing=stack.enter_context(ExitStack()),
            )
            features = await open_features(services)
            for each in features:
                memory.exporter.parts += each.exports
                memory.jobs.forgets += each.forgets
                learned += each.learned
                self._observers += each.observers
            self._observers += [self.observer] if self.observer else []
            behaviors = behaviors_of(services)
            internal, name = models.internal, settings.openai_memory_model
            memory.enable_learning(behaviors.behaviors, internal, name, services.budget.allows)
            assistant = assistant_of(services, behaviors)
            await enter(self._web(services).serving())
            started = asyncio.create_task(telegram.identify(polls=self._polls))
            if await is_done_before(stopping, started):
                started.result()  # raises what prevents the start
                await self._serve(services, telegram, assistant, learner, stopping)

    async def accept(self, raw: RawUpdate, *, after_refusal: bool = False) -> None:
        """Take an update in; raise `NotAccepted` while the bot does not know its own identity."""
        outcome = "refused"
        self._observe(UpdateArrived())
        try:
            if self._intake is None:
                raise NotAccepted
            await self._intake.accept(raw, after_refusal=after_refusal)
            self._health.last_update_at = self._health.clock()
            outcome = "accepted"
        finally:
            self._observe(UpdateHandled(outcome))

    async def _serve(
        self,
        services: Services,
        telegram: Telegram,
        assistant: Assistant,
        learner: BackgroundLearner,
        stopping: asyncio.Event,
    ) -> None:
        settings, sentences, memory = self.settings, services.sentences, services.memory
        chat, features, observe = services.chat, services.features, services.observe
        erasing = [hook for each in features for hook in each.erasing]

        async def deleting(call_context: CallContext) -> None:
            for hook in (assistant.behaviors.on_conversation_deleting, *erasing):
                await hook(call_context)

        commands = build_commands(services, deleting)
        within = assistant.within
        observe(BotServing(memory, lambda context: within(context.conversation).prompt(context)))
        worker = turn_worker(services, assistant, commands.answer)
        buttons = Buttons(commands.buttons, memory, chat, sentences)
        running = watches(services)
        if self.duty.works:
            report_job = Receipts(memory.jobs, chat, sentences).report
            maintenance = Maintenance(memory, learner, report_job, deleting)
            deliverer = Deliverer(chat, settings.send_timeout_s, memory.exporter.export, observe)
            lease_s, serves = settings.lease_s, services.admission.serves
            due_work = WorkLoop(memory.work, memory.scopes, features, deliverer, lease_s, serves)
            loading = services.models.load(_LOAD_AFTER_S)
            running += [worker.run(), maintenance.run(), due_work.run(), loading]
        running += [task() for each in features for task in each.tasks]
        tasks = [asyncio.create_task(each) for each in running]
        taking_in: list[asyncio.Task[None]] = []
        if self.duty.takes_in:
            plan = self._taking_in(services, commands, buttons)
            taking_in = [asyncio.create_task(each) for each in telegram.receive(self.accept, plan)]
        for task in (*tasks, *taking_in):
            task.add_done_callback(_log_failure)
        log.info("serving", bot=services.me().username, polling=self._polls, works=self.duty.works)
        try:
            await stopping.wait()
            log.info("stopping")
        finally:
            intake, self._intake = self._intake, None
            await end_tasks(taking_in)
            await end_tasks(tasks)
            intake_ends = [intake.stop()] if intake else []
            await asyncio.gather(worker.stop(_TURNS_GRACE_S), *intake_ends)
            await learner.stop(_LEARNING_GRACE_S)

    def _taking_in(self, services: Services, commands: CommandSet, buttons: Buttons) -> SetupPlan:
        """Build the intake, and return what Telegram is told."""
        settings, memory, features = self.settings, services.memory, services.features
        names = frozenset(each.name for each in commands.listed)
        file_commands = frozenset(each.name for each in commands.listed if each.takes_file)
        reader = UpdateReader(services.me(), names, services.admission.serves, file_commands)
        backpressure = Backpressure(memory.client, memory.keys, memory.capacity.ballast)
        acts = {kind: act for each in features for kind, act in each.arrivals.items()}
        immediate = ImmediateActions(
            buttons.press, services.edits.take, memory.mailbox, services.chat, acts
        )
        self._intake = Intake(reader.read, memory.mailbox, immediate.act, backpressure)
        menu = menus(services.sentences, commands.listed, settings.admin_user_ids)
        ways = [way for each in features for way in each.ways]
        return SetupPlan(self._webhook, menu, descriptions(services.sentences, ways))

    def _web(self, services: Services) -> WebServer:
        settings = self.settings
        routes = health_routes(
            services.memory.client,
            self._health,
            has_webhook=settings.webhook_url is not None,
            wait_replicas=settings.intake_wait_replicas,
        )
        routes += [route for each in services.features for route in each.routes]
        if self._webhook is not None:
            routes += webhook_routes(self._webhook.secret, self.accept)
        host = "127.0.0.1" if self.observer else "0.0.0.0"  # noqa: S104 - a platform's router calls from outside
        server = WebServer(routes, settings.port, host)
        log.info("listening", port=server.port)
        return server


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("a task failed", exc_info=error)
