"""Updates that wait for the bot: the queue behind getUpdates, and what posts it to the webhook.

Tests can hold the queue, release it in another order, and deliver an update again. Updates of one
lane are posted one after another, lanes side by side up to `max_connections`. An update that is not
answered with 2xx is posted again, after growing pauses.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import httpx2

from bot.http_client import HttpClient
from tests.servers.bot_api.account import Account, Changes

_ON_REQUEST_ONLY = frozenset({"message_reaction", "stopped_message_generation"})


@dataclass(frozen=True, slots=True)
class Update:
    """Something that happened; a webhook gets the updates of one `lane` one after another."""

    id: int
    kind: str
    lane: str
    body: Mapping[str, object]

    def shape(self) -> dict[str, object]:
        return {"update_id": self.id, self.kind: self.body}


@dataclass(slots=True, eq=False)
class Waiting:
    """A delivery that is due; an `owed` one stays below a confirmed offset until handed out."""

    update: Update
    owed: bool = False


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where updates are posted, and by how many connections at a time."""

    url: str
    secret_token: str
    max_connections: int
    connections: asyncio.Semaphore = field(repr=False, compare=False)

    @classmethod
    def to(cls, url: str, secret_token: str, max_connections: int) -> "Webhook":
        return cls(url, secret_token, max_connections, asyncio.Semaphore(max_connections))


class Updates:
    """The bot's queue, which a webhook can empty and tests can hold, reorder and repeat.

    `history` has every update, oldest first.
    """

    def __init__(self, changes: Changes, first_id: int) -> None:
        self.history: list[Update] = []
        self._changes = changes
        self._ids = count(first_id)
        self._waiting: list[Waiting] = []
        self._poll = 0
        self.webhook: Webhook | None = None
        self.allowed: list[str] = []
        self._held = False
        self._scattered = False

    def allow(self, kinds: Sequence[str] | None) -> None:
        """Accept only these kinds; an empty list is the default, `None` changes nothing."""
        if kinds is not None:
            self.allowed = list(kinds)

    async def add(self, kind: str, lane: str, body: Mapping[str, object]) -> None:
        """Append an update, if the bot asked for its kind."""
        if kind in self.allowed or not (self.allowed or kind in _ON_REQUEST_ONLY):
            update = Update(next(self._ids), kind, lane, body)
            self.history.append(update)
            self._waiting.append(Waiting(update))
        await self._changes.tell()

    # What polls do

    @property
    def pending_count(self) -> int:
        return len(self._waiting)

    def confirm(self, offset: int) -> None:
        """Drop updates below `offset`, which may be 0."""
        self._waiting = [w for w in self._waiting if w.owed or w.update.id >= offset]

    def begin_poll(self) -> int:
        """Return the number of a new poll; it ends the one before."""
        self._poll += 1
        return self._poll

    def is_polled_by(self, poll: int) -> bool:
        return poll == self._poll

    def due(self) -> bool:
        return bool(self._waiting) and not self._held

    def hand_out(self, limit: int) -> list[Update]:
        """Return what is due, at most `limit`; it stays in the queue until it is confirmed."""
        handed = self._waiting[:limit] if self.due() else []
        for waiting in handed:
            waiting.owed = False
        return [waiting.update for waiting in handed]

    # What tests do to deliveries

    def hold(self) -> None:
        """Deliver nothing until `release`; deliveries that have begun still arrive."""
        self._held = True

    async def release(
        self, order: Callable[[Sequence[Waiting]], Iterable[Waiting]] | None = None
    ) -> None:
        """Deliver what was held; `order` (such as `reversed`) puts it out of order."""
        if order:
            self._waiting = list(order(self._waiting))
            for waiting in self._waiting:
                waiting.owed = True
        self._held = False
        await self._changes.tell()

    def scatter(self) -> None:
        """Post each update separately from now on, as Telegram may; then chats keep no order."""
        self._scattered = True

    async def redeliver(self, update: Update) -> None:
        """Deliver `update` once more, whatever the bot has confirmed."""
        self._waiting.append(Waiting(update, owed=True))
        await self._changes.tell()

    # What the webhook does

    async def set_webhook(self, webhook: Webhook | None) -> None:
        """Post updates to `webhook` from now on, which ends a running poll, or let them be polled.

        Setting the same again changes nothing.
        """
        if webhook is None or webhook != self.webhook:
            self.webhook = webhook
        if webhook:
            self.begin_poll()
        await self._changes.tell()

    def lanes(self) -> set[str]:
        return {self._lane_of(waiting.update) for waiting in self._postable()}

    def head(self, lane: str) -> Waiting | None:
        waiting = self._postable()
        return next((each for each in waiting if self._lane_of(each.update) == lane), None)

    async def settle(self, waiting: Waiting) -> None:
        if waiting in self._waiting:  # it may have been dropped meanwhile
            self._waiting.remove(waiting)
        await self._changes.tell()

    def _lane_of(self, update: Update) -> str:
        return f"{update.lane} {update.id}" if self._scattered else update.lane

    def _postable(self) -> list[Waiting]:
        return [] if self._held or self.webhook is None else self._waiting


@dataclass(frozen=True, slots=True)
class Pace:
    """Timeouts and pauses of deliveries in seconds; much shorter than the real ones."""

    timeout_s: float = 10
    first_retry_s: float = 0.1
    longest_retry_s: float = 2


class WebhookDelivery:
    """Empties the queue into the webhook, as long as one is set."""

    def __init__(self, account: Account, updates: Updates, pace: Pace) -> None:
        self._account = account
        self._updates = updates
        self._pace = pace
        self._busy: set[str] = set()

    async def run(self) -> None:
        """Deliver until cancelled; a second run begins with the updates that are left."""
        self._busy.clear()
        await self._account.changes.until(lambda: self._updates.webhook)
        async with (
            HttpClient(timeout=self._pace.timeout_s, trust_env=False) as client,
            asyncio.TaskGroup() as group,
        ):
            while True:
                lanes = await self._account.changes.until(self._idle_lanes)
                self._busy |= lanes
                for lane in lanes:
                    group.create_task(self._empty(lane, client))

    def _idle_lanes(self) -> set[str]:
        return self._updates.lanes() - self._busy

    async def _empty(self, lane: str, client: HttpClient) -> None:
        failures = 0
        while (webhook := self._updates.webhook) and (waiting := self._updates.head(lane)):
            if await self._post(client, webhook, waiting.update):
                failures = 0
                await self._updates.settle(waiting)
            else:
                await self._back_off(webhook, failures)
                failures += 1
        self._busy.discard(lane)
        await self._account.changes.tell()

    async def _post(self, client: HttpClient, webhook: Webhook, update: Update) -> bool:
        """Return whether the webhook has taken the update."""
        headers = {"Content-Type": "application/json"}
        if webhook.secret_token:
            headers["X-Telegram-Bot-Api-Secret-Token"] = webhook.secret_token
        body = json.dumps(update.shape()).encode()
        try:
            async with webhook.connections:
                response = await client.post(webhook.url, content=body, headers=headers)
        except httpx2.HTTPError:
            return False
        return response.is_success

    async def _back_off(self, webhook: Webhook, failures: int) -> None:
        """Wait before posting again; a new webhook is tried at once."""
        delay_s = min(self._pace.first_retry_s * 2**failures, self._pace.longest_retry_s)
        with contextlib.suppress(TimeoutError):
            await self._account.changes.until(lambda: self._updates.webhook is not webhook, delay_s)
