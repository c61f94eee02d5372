"""The connection to Telegram: its state, how failed calls are tried again, and polling.

The readiness page shows the state, so it holds no secrets and no text of people.

Without a webhook one process at a time polls. Telegram forgets an update when a later poll names a
higher offset. The offset passes an update when it was accepted or dropped. So after a crash nothing
is lost but what this process holds in its memory; all else is delivered again.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast
from urllib.parse import urlsplit

import structlog

from bot.telegram.bot_api import BotIdentity, TelegramClient
from bot.telegram.errors import (
    BadToken,
    Conflict,
    DeliveryError,
    FloodWait,
    IntakeClosed,
    NotAccepted,
    OutcomeUnknown,
    Refused,
    TelegramError,
    UpdateRefused,
    WebhookTaken,
)
from bot.telegram.intake import Accept, RawUpdate
from memory.store.errors import StoreError
from memory.store.store import NamedLease
from memory.store.tasks import end_tasks

Pause = Callable[[float], Awaitable[object]]
"""Waits for so many seconds."""
# The setting to look at, by the class of an error.
_LOOK_AT = {"Conflict": "TELEGRAM_BOT_TOKEN", "Unreachable": "TELEGRAM_API_URL"}
_FIRST_S = 0.5
_REFUSED_S, _LONGEST_S = 1.0, 30.0
_Answer = TypeVar("_Answer")
_Handed = dict[int, asyncio.Task[None] | None]  # by update id; None: it was accepted before

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class TelegramHealth:
    """Written by setup, poller and webhook, read by the pages. Times are in Unix seconds."""

    clock: Callable[[], float] = time.time
    identity: BotIdentity | None = None
    webhook_set: bool = False
    last_update_at: float | None = None
    standby: bool = False  # another process polls
    last_error: str = ""  # class of the failure that is being retried
    webhook_error_at: float | None = None  # when a delivery failed last, as Telegram says

    def age(self, at: float | None) -> int | None:
        """Return the seconds since `at`, None if `at` is None."""
        return None if at is None else max(0, round(self.clock() - at))

    def account(self) -> BotIdentity:
        """Return our account; raise `NotAccepted` until Telegram has said who we are."""
        if self.identity is None:
            raise NotAccepted
        return self.identity


class Backoff:
    """Waits after failures of one step: longer each time, with jitter, one log line a kind."""

    def __init__(self, step: str, health: TelegramHealth, pause: Pause = asyncio.sleep) -> None:
        self._step = step
        self.health = health
        self.pause = pause
        self._failures = 0
        self._logged = ""

    async def wait(self, error: Exception) -> None:
        """Wait before the next try; the wait that a `FloodWait` asks for is added in full."""
        self.health.last_error = kind = type(error).__name__
        if kind != self._logged:
            # Only the texts of our own errors are known to hold no secret.
            is_ours = isinstance(error, TelegramError | DeliveryError)
            text = getattr(error, "description", str(error)) if is_ours else ""
            look_at = _LOOK_AT.get(kind, "WEBHOOK_URL" if self._step == "set_webhook" else "")
            failed = log.bind(step=self._step, error=kind)
            failed.warning("telegram call failed", description=text, look_at=look_at)
            self._logged = kind
        longest_s = min(_LONGEST_S, _FIRST_S * 2 ** min(self._failures, 10))
        if isinstance(error, UpdateRefused):  # other people must not wait
            longest_s = _REFUSED_S
        else:
            self._failures += 1
        wait_s = random.uniform(longest_s / 2, longest_s)
        if isinstance(error, FloodWait):
            wait_s += error.retry_after_s
        await self.pause(wait_s)

    def succeeded(self) -> None:
        """Reset the waits; log it if calls had failed before."""
        if self._logged:
            log.info("telegram call succeeded again", step=self._step, failures=self._failures)
            self._failures = 0
            self._logged = self.health.last_error = ""

    async def retry(
        self, step: Callable[[], Awaitable[_Answer]], *final: type[TelegramError]
    ) -> _Answer:
        """Repeat `step` until it succeeds, and return its answer; raise a `final` error at once.

        Only for steps that may be done twice.
        """
        while True:
            try:
                answer = await step()
            except final as error:
                self.health.last_error = type(error).__name__
                raise
            except TelegramError as error:
                await self.wait(error)
            else:
                self.succeeded()
                return answer


POLL_S = 20
_MAX_UPDATES = 100  # of one poll
_MAX_STUCK = 100  # full polls (about a minute), after which updates refused alone are held
_HELD_S = 86_400.0  # so long, as Telegram keeps what is refused
_STANDBY_S = 1.0
_RELEASE_S = 2.0
_AT_ONCE_S = 1.0
_EMPTY_PAUSE_S = 1.0


async def make_way_for_polling(client: TelegramClient, *, take_over: bool) -> None:
    """Delete a webhook if we may, because Telegram does not allow polling while one is set.

    Raise `WebhookTaken` if we may not: it may belong to another process, which would get no more
    messages without knowing why.
    """
    try:
        state = await client.webhook_info()
    except (BadToken, OutcomeUnknown, Refused) as error:
        # A server may lack this method. Polling is safe: while a webhook is set it is a `Conflict`.
        log.info("webhook state unknown", reason=type(error).__name__)
        return
    if not state.url:
        return
    host = urlsplit(state.url).hostname or ""
    if not take_over:
        raise WebhookTaken(host)
    await client.delete_webhook()
    log.warning("webhook taken over: the process there gets no messages any more", host=host)


@dataclass(slots=True, eq=False)
class Poller:
    """Long-polls until cancelled and begins to hand on each update, in Telegram's order.

    If the process dies, another one can poll when its lease has ended.
    """

    client: TelegramClient
    accept: Accept
    lease: NamedLease
    backoff: Backoff
    take_over: bool = False
    _offset: int | None = field(default=None, init=False)
    _accepted_ahead: set[int] = field(default_factory=set, init=False)
    _stuck: int = field(default=0, init=False)
    _held: dict[int, tuple[RawUpdate, float]] = field(default_factory=dict, init=False)
    # `identify` has checked; a webhook that is set later raises `Conflict`.
    _webhook_checked: bool = field(default=True, init=False)

    async def run(self) -> None:
        """Poll until cancelled. Then the poll is aborted and the lease released."""
        keeping = asyncio.create_task(self.lease.keep())
        try:
            while True:
                try:
                    self.backoff.health.standby = not await self._may_poll()
                    if self.backoff.health.standby:
                        await self._hand_on(())  # Telegram gives the held ones to nobody else
                        self.backoff.succeeded()  # another process polls now: forget our failures
                        await self.backoff.pause(_STANDBY_S)
                        continue
                    await self._poll()
                    self.backoff.succeeded()
                except Exception as error:  # the outer fence: no error may stop the polling
                    if not isinstance(error, TelegramError | NotAccepted):
                        log.exception("poll failed")
                    await self.backoff.wait(error)
        finally:
            await end_tasks([keeping])
            try:
                async with asyncio.timeout(_RELEASE_S):
                    await self.lease.release()
            except Exception:  # noqa: BLE001 - the lease expires by itself, and we are stopping
                log.warning("poll lease not released")

    async def _may_poll(self) -> bool:
        """Return whether we have the lease; Redis is not asked if it was renewed lately."""
        if time.monotonic() < self.lease.sure_until:
            return True
        try:
            return await self.lease.hold()
        except StoreError as error:
            log.warning("poll lease unavailable", reason=type(error).__name__)
            return False

    async def _poll(self) -> None:
        if not self._webhook_checked:
            await make_way_for_polling(self.client, take_over=self.take_over)
            self._webhook_checked = True
        began = time.monotonic()
        try:
            updates = await self.client.get_updates(self._offset, POLL_S)
        except Conflict:
            self._webhook_checked = False  # perhaps a webhook was set meanwhile
            raise
        if not updates and time.monotonic() - began < _AT_ONCE_S:
            await self.backoff.pause(_EMPTY_PAUSE_S)  # this server does not hold polls open
        if not updates:
            # Telegram has forgotten everything before the offset. Without an offset the next update
            # is found even if Telegram restarts its numbers, as it does after a quiet week.
            self._offset = None
        await self._hand_on(updates)

    async def _hand_on(self, updates: Sequence[RawUpdate]) -> None:
        """Hand updates on in order. While intake is closed, still offer commands and buttons.

        A button press may wait until a turn has stored its message. Later updates go on meanwhile,
        but the next poll waits. The offset stays at the first refused update. So later ones come
        again, and those that were accepted are skipped. Raise the first failure.
        """
        handed: _Handed = {}
        is_closed = False
        polled = {cast(int, each["update_id"]): each for each in updates}
        try:
            held = {id_: update for id_, (update, _until) in self._held.items()}
            for update_id, update in (held | polled).items():
                handed[update_id] = None
                if update_id in self._accepted_ahead:
                    continue
                work = self.accept(update, after_refusal=is_closed)
                handing = handed[update_id] = asyncio.create_task(work)
                if "callback_query" not in update:
                    await asyncio.wait([handing])
                    failure = handing.exception()
                    is_closed = is_closed or isinstance(failure, IntakeClosed)
                    if failure and not isinstance(failure, IntakeClosed | UpdateRefused):
                        break  # each further try could take as long as intake waits for Redis
            await asyncio.gather(*filter(None, handed.values()), return_exceptions=True)
        finally:
            await end_tasks(filter(None, handed.values()))
        self._settle(handed, polled)

    def _settle(self, handed: _Handed, polled: Mapping[int, RawUpdate]) -> None:
        """Move the offset past what is done or held; raise the first failure."""
        failures = {id_: why for id_, each in handed.items() if each and (why := each.exception())}
        for done in handed.keys() - failures.keys():
            self._held.pop(done, None)
        for old in [each for each, (_, until) in self._held.items() if time.monotonic() > until]:
            log.error("update dropped", update=old, reason="held for a day")
            del self._held[old]
        ids = [each for each in handed if each in polled]
        refused = [each for each in ids if each in failures]
        is_full = len(ids) == _MAX_UPDATES
        if self._count_stuck(failures.values() if is_full and refused else ()):
            # While Telegram keeps these, no new one comes. So we hold them in its place.
            room, until = _MAX_UPDATES - len(self._held), time.monotonic() + _HELD_S
            log.error("updates refused in full polls", held=refused[:room], dropped=refused[room:])
            self._held |= {each: (polled[each], until) for each in refused[:room]}
            refused = []
        end = ids.index(refused[0]) if refused else len(ids)
        if end > 0:
            self._offset, self._stuck = ids[end - 1] + 1, 0  # the next poll brings new ones
        if end == len(polled):
            self._accepted_ahead.clear()
        ahead = [each for each in ids[end:] if each not in failures]
        self._accepted_ahead.update(ahead)
        refusal = next(iter(failures.values()), None)
        if is_full and isinstance(refusal, UpdateRefused):
            # Intake drops an update that it refused a minute ago when it stores another one. A full
            # poll has no new one, so we repeat an accepted message. A press would act twice.
            repeated = next((each for each in ahead if "message" in polled[each]), 0)
            self._accepted_ahead.discard(repeated)
        if refusal:
            raise refusal

    def _count_stuck(self, failures: Collection[BaseException]) -> bool:
        """Count full polls in a row in which updates fail one by one; tell if they are too many."""
        causes = [each.__cause__ for each in failures if isinstance(each, UpdateRefused)]
        # Errors of Telegram may all come from one chat. With two other errors, all chats may fail.
        others = [each for each in causes if not isinstance(each, TelegramError)]
        are_single = bool(causes) and len(causes) == len(failures) and len(others) < 2
        self._stuck = self._stuck + 1 if are_single else 0
        return self._stuck > _MAX_STUCK
