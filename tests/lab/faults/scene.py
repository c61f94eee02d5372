"""Everything of one day: its own Redis, our Telegram and model, bots as processes, and people.

`fault` decides what happens in it, and `verdict` judges the result.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic
from typing import Literal

from bot.turn.outbox import Outbox
from memory.store.client import RedisClient
from memory.store.keys import Scope, ScopeKeys
from tests.acceptance.bot_process import BotProcess
from tests.acceptance.rig import Rig, open_rig
from tests.acceptance.scripted_day import Day, Echo, Wish, markers
from tests.lab.wire_tap import RoundTrip, WireTap
from tests.servers.bot_api import Chat, Pace
from tests.valkey import ValkeyServer, opened

StopsBefore = Callable[[RoundTrip], bool]
Role = Literal["all", "web", "worker"]
MANY: tuple[Role, ...] = ("web", "worker", "worker")

_PEOPLE = 4
_MODEL = "model-{}"  # each process asks for a model of its own name, so a request shows its process

_MAX_PAUSE_S = 0.15
_CHECK_EVERY_S = 0.1
_LEASE_S = 4  # so long a day waits for what a killed bot held; a busy machine must not end a lease
_RESUMED_S = 90


class StepTap(WireTap):
    """Keeps back one request, so that all before it has happened and nothing after it.

    When it is `reached`, kill the process; then `let_go`.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.reached = asyncio.Event()
        self._stops_before: StopsBefore | None = None
        self._is_over = asyncio.Event()

    def stop(self, before: StopsBefore) -> None:
        """Keep back the first request for which `before` is true."""
        self.reached, self._is_over = asyncio.Event(), asyncio.Event()
        self._stops_before = before

    def let_go(self) -> None:
        """Keep no request back; a connection with such a request ends without it."""
        self._stops_before = None
        self._is_over.set()

    async def hold(self, sent: bytes) -> None:
        """Keep back this data if it is the request."""
        if self._stops_before and self._stops_before(RoundTrip(sent)):
            self._stops_before = None
            self.reached.set()
            await self._is_over.wait()
            raise ConnectionResetError("the process was killed before this step")


@dataclass(frozen=True, slots=True)
class Stage:
    """The setup that a fault needs.

    `roles` are the first processes; the webhook reaches only the first of them. `settings` change
    the bots' environment, `redis_environment` that of Redis. With `learns` the day ends only when
    everything was learned. If it `is_tapped`, each process reaches Redis over its own one of
    `scene.taps`.
    """

    intake: Literal["webhook", "polling"] = "webhook"
    roles: tuple[Role, ...] = ("all",)
    settings: Mapping[str, object] = field(default_factory=dict)
    redis_environment: Mapping[str, str] = field(default_factory=dict)
    learns: bool = False
    is_tapped: bool = False


POLLED_MANY = Stage("polling", ("web", "web", "worker", "worker"))
"""One of the two webs polls; it holds a lease for that."""


class Scene:
    """Everything that a strike may use.

    `bots` are the processes in the order of the stage's roles: `start`, `stop` (SIGTERM), `kill`,
    `pause`, `resume`, `wait_for_log`. `redis` is the server, which keeps its data: `stop`, `kill`,
    `start`, `ask("CONFIG SET …")`. `telegram.faults`, `telegram.updates` and
    `model.faults` inject faults on the wire. `talk` lets people write now.
    """

    def __init__(
        self,
        rig: Rig,
        redis: ValkeyServer,
        stage: Stage,
        random: Random,
        taps: Sequence[StepTap] = (),
    ) -> None:
        self.rig = rig
        self.telegram, self.model = rig.telegram, rig.model
        self.redis = redis
        self.stage = stage
        self.random = random
        self.day = Day(rig, random, _PEOPLE)
        self.taps = taps
        """In the order of `bots`; empty if the stage is not tapped."""
        self.hit: set[str] = set()
        """Markers of texts that a strike may leave unanswered, in addition to `Fault.turns`."""
        self.safe: set[str] = set()
        """Markers of texts written after the last fault; they must be answered."""
        self.doubts: Counter[tuple[int, str]] = Counter()
        """Parts, by chat and text, that may have been sent without being marked as sent."""
        self.round = 0
        """The number of the round, from 0; a strike uses it to choose a variant."""
        self.struck = 0
        """The number of rounds in which the fault has happened."""
        self.met: set[str] = set()
        """Names of moments that came in time at least once."""
        self.missed: set[str] = set()
        """Names of moments that did not come in time at least once."""
        port = rig.environment["PORT"]
        self.bots: list[BotProcess] = []
        for number, role in enumerate(stage.roles):
            own = {"openai_model": _MODEL.format(number), "port": "0" if number else port}
            own |= {"redis_url": taps[number].url} if taps else {}
            self.bots.append(rig.another_bot(command="" if role == "all" else role, **own))
        # For code that expects a single bot.
        self.rig.bot = self.bots[0]

    def worker_on(self, text: str) -> BotProcess | None:
        """Return the process that last asked the model about the markers in a text, or `None`."""
        named = set(markers(text))
        for request in reversed(self.model.log.chats):
            if named.intersection(markers(request.asked)):
                names = [_MODEL.format(number) for number in range(len(self.bots))]
                return self.bots[names.index(request.model)]
        return None

    async def talk(self, texts: int, wish: Wish | None = None) -> None:
        """Let people write so many texts with short pauses, the first with this wish."""
        for number in range(texts):
            await self.day.talk(1, wish=None if number else wish)
            await asyncio.sleep(self.random.uniform(0, _MAX_PAUSE_S))

    def note_unanswered(self) -> None:
        """Add all unanswered texts to `hit`; the newest reply of a chat may not be complete yet."""
        for chat in self.day.chats:
            seen = {marker for reply in chat.replies[:-1] for marker in markers(reply.text)}
            self.hit.update(marker for marker in self.day.said_in(chat) if marker not in seen)

    async def note_doubts(self, redis: str = "") -> set[int]:
        """Note the parts that may be sent twice, because Redis has them as being sent.

        Call it while Redis (or a copy of it at `redis`) answers and no bot that was hit can act:
        after the bot was killed or paused, and before another bot takes over. Return the chats
        whose turn has no reply yet.
        """
        unanswered = set()
        async with opened(redis or self.redis.url) as store:
            for chat in self.day.chats:
                turn = await store.call("HGETALL", self.keys_of(chat).turn)
                if turn.get(b"outbox"):
                    part = Outbox.from_bytes(turn[b"outbox"]).parts[int(turn[b"sending"])]
                    self.doubts[chat.id, part.text] += 1
                elif turn:
                    unanswered.add(chat.id)
        return unanswered

    @asynccontextmanager
    async def resuming(self, redis: str = "") -> AsyncIterator[None]:
        """Note the parts in doubt, let the block repair things, and wait for the interrupted chats.

        They must be answered before the next strike, because a turn that began three times gets an
        apology.
        """
        before, interrupted = len(self.telegram.calls), await self.note_doubts(redis)
        yield

        def is_resumed() -> bool:
            calls = self.telegram.calls[before:]
            return interrupted <= {call.chat_id for call in calls if call.method == "sendMessage"}

        await self.telegram.wait_for(is_resumed, timeout_s=_RESUMED_S)

    def heal(self) -> None:
        self.telegram.faults.clear()
        self.model.faults.clear()

    async def settle(self, patience_s: float, *chats: Chat) -> bool:
        """Wait until all work of `chats` is done, at most `patience_s`; return whether it is done.

        Then Telegram has no update to deliver, and no chat has waiting updates, a turn or a lease,
        nor something to learn if the stage learns. Without `chats`, all chats of the day count.
        The verdict reports what is not done in time. Redis must be running.
        """
        deadline = monotonic() + patience_s
        async with opened(self.redis.url) as store:
            while not (is_quiet := await self._is_quiet(chats, store)) and monotonic() < deadline:  # noqa: ASYNC110 - Redis sends no event
                await asyncio.sleep(_CHECK_EVERY_S)
        return is_quiet

    async def _is_quiet(self, chats: Sequence[Chat], store: RedisClient) -> bool:
        if self.telegram.updates.pending_count:
            return False
        return not any([await self.left_of(chat, store) for chat in chats or self.day.chats])

    async def left_of(self, chat: Chat, store: RedisClient) -> list[str]:
        """Return what is stored of a chat and does not stay when it is quiet."""
        keys = self.keys_of(chat)
        rest = {"waiting updates": keys.mailbox, "a turn": keys.turn, "a lease": keys.lease}
        said, learned, *exist = await store.pipeline(
            [("XLEN", keys.log), ("XLEN", keys.vectors)]
            + [("EXISTS", key) for key in rest.values()]
        )
        left = [name for name, exists in zip(rest, exist, strict=True) if exists]
        return [*left, "something to learn"] if self.stage.learns and learned < said else left

    def keys_of(self, chat: Chat) -> ScopeKeys:
        return self.rig.keys.scope(Scope.of_chat(chat.id))


@asynccontextmanager
async def open_scene(stage: Stage, folder: Path, random: Random) -> AsyncIterator[Scene]:
    """Yield a scene whose bots run; afterwards end every process and check the bots' logs."""
    # The bots and Redis share a home folder, because a preloaded clock reads its time there.
    environment = {"HOME": str(folder), **stage.redis_environment}
    options = ("--appendonly", "yes")
    pace = Pace(longest_retry_s=_CHECK_EVERY_S)
    async with AsyncExitStack() as stack:
        server = ValkeyServer(folder / "valkey", *options, environment=environment)
        redis = stack.enter_context(server)
        rig = await stack.enter_async_context(open_rig(redis.url, folder, stage.intake, pace))
        changed = {"LEASE_S": _LEASE_S, **stage.settings}
        rig.environment.update({name.upper(): str(v) for name, v in changed.items()})
        rig.model.responder = Echo()
        tapped = [StepTap(redis.port) for _ in stage.roles if stage.is_tapped]
        taps = [await stack.enter_async_context(tap) for tap in tapped]
        scene = Scene(rig, redis, stage, random, taps)
        for bot in scene.bots:
            await bot.start()
        yield scene
