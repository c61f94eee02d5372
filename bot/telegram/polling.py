"""Asks Telegram for updates where no webhook can be reached; one process at a time.

Telegram forgets an update only when a later poll names a higher offset, so the offset never passes
one that was not taken: whatever happens here, nothing is lost, only delivered again.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol, cast
from urllib.parse import urlsplit

import structlog

from bot.telegram.backoff import Backoff, Pause
from bot.telegram.client import TelegramClient
from bot.telegram.delivery import Accept, RawUpdate, deliver
from bot.telegram.errors import (
    BadToken,
    Conflict,
    IntakeClosed,
    NotAccepted,
    OutcomeUnknown,
    Refused,
    TelegramError,
    WebhookTaken,
)
from bot.telegram.health import TelegramHealth

POLL_S = 20
_STANDBY_S = 1.0
_RELEASE_S = 2.0
_AT_ONCE_S = 1.0
_EMPTY_PAUSE_S = 1.0

log = structlog.get_logger(__name__)


class PollLease(Protocol):
    """The right to poll; asked for before each poll, so it should outlast the longest one, 30 s."""

    async def hold(self) -> bool:
        """Acquire or renew; False while another process holds it."""
        ...

    async def release(self) -> None:
        """Let another process poll at once."""
        ...


async def make_way_for_polling(client: TelegramClient, *, take_over: bool) -> None:
    """Delete a webhook if we may, since nothing can be polled beside it.

    Raise `WebhookTaken` for one that we may not delete: it may be another process's, which would
    get no messages any more without knowing why.
    """
    try:
        state = await client.webhook_info()
    except (BadToken, OutcomeUnknown, Refused) as error:
        # A server may not have this method. Polling is safe: beside a webhook it is a `Conflict`.
        log.info("webhook state unknown", reason=type(error).__name__)
        return
    if not state.url:
        return
    host = urlsplit(state.url).hostname or ""
    if not take_over:
        raise WebhookTaken(host)
    await client.delete_webhook()
    log.warning("webhook taken over: the process there gets no messages any more", host=host)


class Poller:
    """Long-polls until cancelled and hands each update on, in Telegram's order.

    Only what a closed intake takes overtakes what it does not, among the 100 that a poll brings.
    """

    def __init__(
        self,
        client: TelegramClient,
        accept: Accept,
        lease: PollLease,
        health: TelegramHealth,
        *,
        take_over: bool = False,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._client = client
        self._accept = accept
        self._lease = lease
        self._health = health
        self._take_over = take_over
        self._pause = pause
        self._backoff = Backoff("poll", health, pause)
        self._offset: int | None = None
        self._overtook: set[int] = set()
        self._has_way = False

    async def run(self) -> None:
        """Poll for ever; cancelling breaks off the poll under way and gives the lease back."""
        try:
            while True:
                await self._try_once()
        finally:
            await self._release()

    async def _try_once(self) -> None:
        try:
            self._health.standby = not await self._lease.hold()
            if self._health.standby:
                self._backoff.succeeded()  # what trouble is left is whose who polls now
                await self._pause(_STANDBY_S)
                return
            await self._poll()
            self._backoff.succeeded()
        except (TelegramError, NotAccepted) as error:
            await self._backoff.wait_out(error)
        except Exception as error:  # the outer fence: a deaf bot is worse
            log.exception("poll failed")
            await self._backoff.wait_out(error)

    async def _poll(self) -> None:
        if not self._has_way:
            await make_way_for_polling(self._client, take_over=self._take_over)
            self._has_way = True
        began = time.monotonic()
        try:
            updates = await self._client.get_updates(self._offset, POLL_S)
        except Conflict:
            self._has_way = False  # perhaps somebody has set a webhook
            raise
        self._health.polled()
        if not updates and time.monotonic() - began < _AT_ONCE_S:
            await self._pause(_EMPTY_PAUSE_S)  # this server does not hold a poll
        if not updates:
            # All before the offset is forgotten now. Without one, the next update is found even if
            # Telegram begins its numbers anew, as it does after a week of silence.
            self._offset = None
        await self._take(updates)

    async def _take(self, updates: Sequence[RawUpdate]) -> None:
        """Hand updates on; behind a message for which intake is closed, what it takes all the same.

        The offset stays, so that comes again and is left out then. Raise `NotAccepted`.
        """
        closed: IntakeClosed | None = None
        for update in updates:
            update_id, overtakes = cast(int, update["update_id"]), closed is not None
            try:
                if update_id not in self._overtook:
                    await deliver(update, self._accept, self._health, overtakes=overtakes)
            except IntakeClosed as error:
                closed = closed or error
            else:
                if overtakes:
                    self._overtook.add(update_id)
                else:
                    self._offset = update_id + 1
        if closed is not None:
            raise closed
        self._overtook.clear()

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(_RELEASE_S):
                await self._lease.release()
        except Exception:  # noqa: BLE001 - it expires by itself, and we are on our way out
            log.warning("poll lease not released")
