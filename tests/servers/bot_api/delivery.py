"""Posts updates to the bot's webhook, as Telegram does.

Updates of one lane are posted one after another, lanes side by side up to `max_connections`. An
update that is not answered with 2xx is posted again, after growing pauses.
"""

import asyncio
import contextlib
import json
from dataclasses import dataclass

import httpx2

from bot.http_client import HttpClient
from tests.servers.bot_api.account import Account
from tests.servers.bot_api.updates import Update, Updates, Webhook


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
            error = await self._post(client, webhook, waiting.update)
            if error is None:
                failures = 0
                await self._updates.settle(waiting)
            else:
                self._updates.last_error = (self._account.now(), error)
                await self._account.changes.tell()
                await self._back_off(webhook, failures)
                failures += 1
        self._busy.discard(lane)
        await self._account.changes.tell()

    async def _post(self, client: HttpClient, webhook: Webhook, update: Update) -> str | None:
        headers = {"Content-Type": "application/json"}
        if webhook.secret_token:
            headers["X-Telegram-Bot-Api-Secret-Token"] = webhook.secret_token
        body = json.dumps(update.shape()).encode()
        try:
            async with webhook.connections:
                response = await client.post(webhook.url, content=body, headers=headers)
        except httpx2.TimeoutException:
            return "Read timeout expired"
        except httpx2.ConnectError:
            return "Connection refused"
        except httpx2.HTTPError:
            return "Webhook connection closed"
        if response.is_success:
            return None
        return f"Wrong response from the webhook: {response.status_code} {response.reason_phrase}"

    async def _back_off(self, webhook: Webhook, failures: int) -> None:
        """Wait before posting again; a new webhook is tried at once."""
        delay_s = min(self._pace.first_retry_s * 2**failures, self._pace.longest_retry_s)
        with contextlib.suppress(TimeoutError):
            await self._account.changes.until(lambda: self._updates.webhook is not webhook, delay_s)
