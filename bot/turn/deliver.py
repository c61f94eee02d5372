"""Delivery: sends the parts of an outbox in order, each marked before it is sent.

Decides what each of Telegram's refusals means for the turn; never asks the model.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

import structlog

from bot.reply.parts import OutgoingFile, Part
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import (
    Blocked,
    ChatMigrated,
    FloodWait,
    OutcomeUnknown,
    Refused,
    TelegramError,
    Unreachable,
)
from bot.turn.observers import Observer, PartSent
from bot.turn.outbox import Outbox
from memory.queue.open_turn import LeaseLost, Superseded
from memory.store.keys import Scope

log = structlog.get_logger(__name__)
T = TypeVar("T")

LONGEST_FLOOD_WAIT_S = 20
_UNREACHABLE_PAUSES_S = (0.5, 1, 2, 4)
_PARK_UNREACHABLE_S = 30

Mark = Callable[[int, tuple[int, ...]], Awaitable[None]]
"""Marks a part as being sent, those before it as sent.

Raises `Superseded` where the last of these may count, otherwise `LeaseLost`.
"""

Pause = Callable[[float], Awaitable[object]]

MakeFile = Callable[[Scope], Awaitable[OutgoingFile]]
"""Returns everything that is stored of a conversation as a file; raises `StoreError`."""


class Parked(Exception):
    """Raised when Telegram wants a longer pause than a lease should last."""

    def __init__(self, pause_s: float) -> None:
        super().__init__(f"parked for {pause_s:g} s")
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True)
class Delivery:
    """How it ended: message ids of the parts that were sent.

    `unknown` parts left without an answer and were not repeated; `undeliverable` means that the
    person or the chat is gone, or that Telegram will never take the reply. `in_doubt` is the part
    that only the commit will mark as sent; 0 when there is none.
    """

    outcome: Literal["delivered", "unknown", "undeliverable"]
    sent: tuple[int, ...]
    chat_id: int
    in_doubt: int


class Deliverer:
    """Sends outboxes."""

    def __init__(
        self,
        chat: Chat,
        timeout_s: float,
        export: MakeFile,
        observe: Observer,
        *,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._chat = chat
        self._timeout_s = timeout_s
        self._export = export
        self._observe = observe
        self._pause = pause

    async def deliver(
        self, outbox: Outbox, start: int, sent: tuple[int, ...], mark: Mark
    ) -> Delivery:
        """Send the parts from `start` on; the one at `start` is marked already.

        Raise `Parked` when it has to wait long, and whatever `mark` raises. With `LeaseLost` the
        part just sent is taken back: another holder sends it again, or everything was erased; with
        `Superseded` it stays.
        """
        outcome: Literal["delivered", "unknown"] = "delivered"
        chat_id, in_doubt = outbox.chat_id, 0
        for number in range(start, len(outbox.parts)):
            marking = partial(mark, number, sent)
            if number > start:
                await self.guard(chat_id, in_doubt, marking())
            try:
                in_doubt, chat_id = await self._send(
                    replace(outbox, chat_id=chat_id), number, marking
                )
            except (Blocked, Refused) as error:
                log.info("undeliverable", reason=type(error).__name__, part=number)
                return Delivery("undeliverable", sent, chat_id, in_doubt=0)
            except OutcomeUnknown:
                log.warning("delivery unknown", part=number)
                outcome, in_doubt = "unknown", 0
                continue
            sent = (*sent, in_doubt)
        return Delivery(outcome, sent, chat_id, in_doubt)

    async def guard(self, chat_id: int, in_doubt: int, step: Awaitable[T]) -> T:
        """Await a step of the protocol; when it is refused, take back the part just sent.

        Unless that one stands for whoever goes on, as earlier parts do: they know of them. Who is
        cancelled meanwhile still learns of the refusal: a lost lease cancels its turn, too.
        """
        guarded = asyncio.ensure_future(self._guarded(chat_id, in_doubt, step))
        try:
            return await asyncio.shield(guarded)
        except asyncio.CancelledError:
            await asyncio.gather(guarded, return_exceptions=True)
            raise

    async def _guarded(self, chat_id: int, in_doubt: int, step: Awaitable[T]) -> T:
        try:
            return await step
        except Superseded:
            raise
        except LeaseLost:
            if in_doubt:
                await self._take_back(chat_id, in_doubt)
            raise

    async def _take_back(self, chat_id: int, message_id: int) -> None:
        try:
            await self._chat.delete(chat_id, message_id)
        except TelegramError as error:
            log.warning("could not take back", reason=type(error).__name__)

    async def _send(
        self, outbox: Outbox, number: int, marking: Callable[[], Awaitable[None]]
    ) -> tuple[int, int]:
        """Send one part until it is taken, refused or in doubt; return message and chat id.

        After each wait the part is marked anew, for nothing is sent once its turn was refused.
        """
        part, waited_s, pauses = outbox.parts[number], 0.0, iter(_UNREACHABLE_PAUSES_S)
        while True:
            try:
                await self._wait_for_place(outbox.chat_id, marking)
                message_id = await self._send_once(outbox, number, part)
            except FloodWait as error:
                waited_s += error.retry_after_s
                if waited_s > LONGEST_FLOOD_WAIT_S:
                    raise Parked(error.retry_after_s) from error
                await self._pause(error.retry_after_s)
            except Unreachable as error:
                pause_s = next(pauses, None)
                if pause_s is None:
                    raise Parked(_PARK_UNREACHABLE_S) from error
                log.info("telegram unreachable", part=number, pause_s=pause_s)
                await self._pause(pause_s)
            except ChatMigrated as error:
                outbox = replace(outbox, chat_id=error.new_chat_id)
            except Refused as error:
                if not error.bad_entities or not part.entities:
                    raise
                part = replace(part, entities=())
            else:
                return message_id, outbox.chat_id
            await marking()

    async def _wait_for_place(self, chat_id: int, marking: Callable[[], Awaitable[None]]) -> None:
        """Wait until the budget has a place for a message; raise `FloodWait` for a long wait."""
        async for wait_s in self._chat.waits(chat_id):
            await self._pause(wait_s)
            await marking()

    async def _send_once(self, outbox: Outbox, number: int, part: Part) -> int:
        """Send a part; cancelled meanwhile, wait for it and take it back, as `guard` would."""
        reply_to = outbox.reply_to if number == 0 else 0
        to = Destination(outbox.chat_id, outbox.topic_id, reply_to)
        sending = asyncio.ensure_future(self._send_observed(to, part))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            with suppress(TelegramError):
                await self._take_back(outbox.chat_id, await sending)
            raise

    async def _send_observed(self, to: Destination, part: Part) -> int:
        """Send a part, with the file that it stands for made now; observers hear of the outcome."""
        if part.export_of:
            part = replace(part, file=await self._export(Scope(part.export_of)))
        outcome = "sent"
        try:
            return await self._chat.send(to, part, self._timeout_s)
        except TelegramError as error:
            outcome = type(error).__name__
            raise
        finally:
            self._observe(PartSent(outcome))
