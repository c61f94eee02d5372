"""Delivery: sends the parts of an outbox in order, each marked before it is sent.

Decides what each of Telegram's refusals means for the turn; never asks the model.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

import structlog

from bot.reply.parts import Part
from bot.telegram.errors import (
    Blocked,
    ChatMoved,
    FloodWait,
    OutcomeUnknown,
    Refused,
    TelegramError,
    Unreachable,
)
from bot.turn.outbox import Outbox
from memory.protocol.turns import LeaseLost

log = structlog.get_logger(__name__)
T = TypeVar("T")

LONGEST_FLOOD_WAIT_S = 20
_UNREACHABLE_PAUSES_S = (0.5, 1, 2, 4)
_PARK_UNREACHABLE_S = 30

Mark = Callable[[int, tuple[int, ...]], Awaitable[None]]
"""Marks a part as being sent, those before it as sent; raises `LeaseLost`."""


class Sender(Protocol):
    """What delivery needs of Telegram."""

    async def send(
        self, chat_id: int, topic_id: int, part: Part, reply_to: int | None, timeout_s: float
    ) -> int:
        """Send one part; return its message id or raise `TelegramError`."""
        ...

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete one of our messages or raise `TelegramError`."""
        ...


class Parked(Exception):  # noqa: N818 - says when
    """Raised when Telegram wants a longer pause than a lease should last."""

    def __init__(self, pause_s: float) -> None:
        super().__init__(f"parked for {pause_s:g} s")
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True)
class Delivery:
    """How it ended: message ids of the parts that were sent.

    `unknown` parts left without an answer and were not repeated; `undeliverable` means that the
    person or the chat is gone, or that Telegram will never take the reply.
    """

    outcome: Literal["delivered", "unknown", "undeliverable"]
    sent: tuple[int, ...]
    chat_id: int


class Deliverer:
    """Sends outboxes."""

    def __init__(self, telegram: Sender, timeout_s: float) -> None:
        self._telegram = telegram
        self._timeout_s = timeout_s

    async def deliver(
        self, outbox: Outbox, start: int, sent: tuple[int, ...], mark: Mark
    ) -> Delivery:
        """Send the parts from `start` on; the one at `start` is marked already.

        Raise `Parked` when it has to wait long, and whatever `mark` raises: then the part just sent
        is taken back, because another holder answers or everything was erased.
        """
        outcome: Literal["delivered", "unknown"] = "delivered"
        chat_id = outbox.chat_id
        for number in range(start, len(outbox.parts)):
            if number > start:
                await self.guard(chat_id, sent, mark(number, sent))
            try:
                message_id, chat_id = await self._send(replace(outbox, chat_id=chat_id), number)
            except (Blocked, Refused) as error:
                log.info("undeliverable", reason=type(error).__name__, part=number)
                return Delivery("undeliverable", sent, chat_id)
            except OutcomeUnknown:
                log.warning("delivery unknown", part=number)
                outcome = "unknown"
                continue
            sent = (*sent, message_id)
        return Delivery(outcome, sent, chat_id)

    async def guard(self, chat_id: int, sent: tuple[int, ...], step: Awaitable[T]) -> T:
        """Await a step of the protocol; when it is refused, take back the part just sent."""
        try:
            return await step
        except LeaseLost:
            if sent:
                await self._take_back(chat_id, sent[-1])
            raise

    async def _take_back(self, chat_id: int, message_id: int) -> None:
        try:
            await self._telegram.delete(chat_id, message_id)
        except TelegramError as error:
            log.warning("could not take back", reason=type(error).__name__)

    async def _send(self, outbox: Outbox, number: int) -> tuple[int, int]:
        """Send one part until it is taken, refused or in doubt; return message and chat id."""
        part, chat_id, pauses = outbox.parts[number], outbox.chat_id, iter(_UNREACHABLE_PAUSES_S)
        reply_to = outbox.reply_to if number == 0 and outbox.reply_to else None
        while True:
            try:
                message_id = await self._telegram.send(
                    chat_id, outbox.topic_id, part, reply_to, self._timeout_s
                )
            except FloodWait as error:
                if error.retry_after_s > LONGEST_FLOOD_WAIT_S:
                    raise Parked(error.retry_after_s) from error
                await asyncio.sleep(error.retry_after_s)
            except Unreachable as error:
                pause = next(pauses, None)
                if pause is None:
                    raise Parked(_PARK_UNREACHABLE_S) from error
                await asyncio.sleep(pause)
            except ChatMoved as error:
                chat_id = error.new_chat_id
            except Refused as error:
                if not error.bad_entities or not part.entities:
                    raise
                part = replace(part, entities=())
            else:
                return message_id, chat_id
