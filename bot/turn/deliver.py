"""Delivery: sends the parts of an outbox in order, each marked in Redis before it is sent.

Decides what each of Telegram's errors means for the turn; never asks the model.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeVar

import structlog

from bot.reply.parts import Part, Parts
from bot.reply.render import plain
from bot.reply.source import rich_markdown
from bot.reply.split import without_file
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import (
    BadToken,
    Blocked,
    ChatMigrated,
    FloodWait,
    OutcomeUnknown,
    RefusalReason,
    Refused,
    TelegramError,
    Unreachable,
)
from bot.turn.observers import Observer, PartSent
from bot.turn.outbox import Outbox
from memory.behaviors.tool_output import OutgoingFile
from memory.queue.open_turn import QuestionErased, Superseded
from memory.store.errors import LeaseLost, StoreError, StoreFull, StoreUnavailable
from memory.store.keys import Scope
from memory.store.tasks import shielded

log = structlog.get_logger(__name__)
MAX_FLOOD_WAIT_S = 20  # a longer pause parks the turn, because a lease should not last that long
_MAX_BAN_S = 5.0  # that a deletion waits for, because a worker that has to stop waits for that
_PAUSES_S = (0.5, 1, 2, 4)  # between tries while Telegram is away
_STORE_PAUSES_S = (*_PAUSES_S, 4, 4, 4, 4)
"""Between tries while the store is away, which together take most of a lease."""
_PARK_UNREACHABLE_S = 30


class Parked(Exception):
    """Raised when a turn has to wait for Telegram for longer than a lease should last."""

    def __init__(self, pause_s: float) -> None:
        super().__init__(f"parked for {pause_s:g} s")
        self.pause_s = pause_s


@dataclass(slots=True, eq=False)
class _SendRetries:
    """Says how long to pause after each failure of one part, until the turn must be parked."""

    is_rich: bool
    _waited_s: float = 0.0
    _pauses: Iterator[float] = field(default_factory=lambda: iter(_PAUSES_S))

    def pause_s(self, error: FloodWait | Unreachable | BadToken) -> float:
        """Return the pause; raise `Parked` if it would be too long, or what no pause would mend."""
        if isinstance(error, BadToken) and self.is_rich:  # an older server has no such method
            raise error
        if isinstance(error, FloodWait):
            self._waited_s += error.retry_after_s
            if self._waited_s > MAX_FLOOD_WAIT_S:
                raise Parked(error.retry_after_s) from error
            return error.retry_after_s
        # After a refused token the next process may come with a new one: nothing is given up.
        if isinstance(error, BadToken) or (pause_s := next(self._pauses, None)) is None:
            raise Parked(_PARK_UNREACHABLE_S) from error
        log.info("telegram unreachable", pause_s=pause_s)
        return pause_s


T = TypeVar("T")
Mark = Callable[[int, tuple[int, ...]], Awaitable[None]]
"""Marks a part as being sent, and the parts before it as sent, with the ids of their messages.

Raises `Superseded` if the newest of these may count as sent for another worker, else `LeaseLost`.
"""
Requesting = Callable[[], AbstractAsyncContextManager[None]]
"""Is entered right before each request that sends a part; sees how the request ended."""


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The message shown last, which only the next mark or the commit will count as sent.

    If it is a former reply that was edited, it may show the reply of another worker by now. So it
    stays if the step is refused, unless the question was erased.
    """

    chat_id: int  # differs from the outbox's if the group has become a supergroup
    message_id: int = 0  # 0 if there is none
    was_edited: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a delivery ended.

    `unknown`: Telegram did not answer for a part, and the part was not sent again. `undeliverable`:
    Telegram will never take the reply, because of `refused`.
    """

    outcome: Literal["delivered", "unknown", "undeliverable"]
    sent: tuple[int, ...]  # ids of the messages in the chat
    in_doubt: InDoubt
    refused: RefusalReason | None = None  # "blocked": a 403


@dataclass(slots=True, eq=False)
class Deliverer:
    """Sends outboxes; `timeout_s` bounds the call for one part."""

    chat: Chat
    timeout_s: float
    export: Callable[[Scope], Awaitable[OutgoingFile]]  # all that is stored of a conversation
    observe: Observer
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep

    async def deliver(
        self,
        outbox: Outbox,
        start: int,
        sent: tuple[int, ...],
        mark: Mark,
        requesting: Requesting = nullcontext,
    ) -> Delivery:
        """Send the parts from `start` on; the part at `start` is already marked.

        Raise `Parked` if a long wait is due, and whatever `mark` raises (see `guard`).

        The first parts are edited into the messages that the outbox replaces. To edit one of these
        again does no harm. So it is deleted only after `QuestionErased`. A reply that `is_below` is
        sent, and then these messages are deleted; to delete them again does no harm either. If the
        group has moved, nothing is replaced: in the new group the ids may belong to other messages.
        """
        outcome: Literal["delivered", "unknown"] = "delivered"
        to, in_doubt, first = outbox.to, InDoubt(outbox.to.chat_id), start
        formers = () if outbox.is_below else outbox.replaces
        if start == 0 and outbox.rich_parts and not formers and self.chat.takes_rich(to.chat_id):
            rich = Part(rich_markdown(outbox.said), is_rich=True)
            try:
                marking = partial(mark, 0, sent)
                sent_id, to = await self._send(to, rich, marking, requesting=requesting)
                in_doubt = InDoubt(to.chat_id, sent_id)
                sent, first = (sent_id,), outbox.rich_parts
            except OutcomeUnknown as error:
                log.warning("delivery unknown", part=0, reason=str(error))
                outcome, first = "unknown", outbox.rich_parts
            except (BadToken, Blocked, Refused) as error:  # the plain parts show which it is
                log.info("rich message refused", reason=type(error).__name__)
        for number, part in enumerate(outbox.parts[first:], first):
            marking = partial(mark, number, sent)
            if number > start:
                await self.guard(in_doubt, marking)
            # Only the first part shows which message is answered.
            to = to if number == 0 else replace(to, reply_to=0)
            former = formers[number] if number < len(formers) else 0
            try:
                sent_id, to = await self._send(to, part, marking, former, requesting)
            except (Blocked, Refused) as error:
                log.info("undeliverable", reason=type(error).__name__, part=number)
                refused = error.reason if isinstance(error, Refused) else "blocked"
                return Delivery("undeliverable", sent, InDoubt(to.chat_id), refused)
            except OutcomeUnknown as error:
                log.warning("delivery unknown", part=number, reason=str(error))
                outcome, in_doubt = "unknown", InDoubt(to.chat_id)
                continue
            formers = formers if to.chat_id == outbox.to.chat_id else ()
            if sent_id:
                sent = (*sent, sent_id)
            in_doubt = InDoubt(to.chat_id, sent_id, sent_id in formers)
        left_over = outbox.replaces[0 if outbox.is_below else len(outbox.parts) :]
        for each in left_over if to.chat_id == outbox.to.chat_id else ():
            await self._delete(to.chat_id, each)
        return Delivery(outcome, sent, in_doubt)

    async def guard(self, in_doubt: InDoubt, step: Callable[[], Awaitable[T]]) -> T:
        """Run a step that marks a part or commits; if it is refused, delete the message `in_doubt`.

        While the store is away or full the step is repeated, for 23 s and the time of its calls, so
        that no other run sends the part again. Then the last `StoreError` is raised.
        After `Superseded` nothing is deleted, because the part may count as sent. A try is
        shielded, because losing the lease also cancels the turn; after that no other try is made.
        """

        async def stepping() -> T:
            try:
                return await step()
            except Superseded:
                raise
            except LeaseLost as lost:
                stays = in_doubt.was_edited and not isinstance(lost, QuestionErased)
                if in_doubt.message_id and not stays:
                    await self._delete(in_doubt.chat_id, in_doubt.message_id)
                raise

        for pause_s in _STORE_PAUSES_S:
            with suppress(StoreFull, StoreUnavailable):
                return await shielded(stepping())
            await self.pause(pause_s)
        return await shielded(stepping())

    async def _delete(self, chat_id: int, message_id: int, left_s: float = _MAX_BAN_S) -> None:
        try:
            await self.chat.delete(chat_id, message_id)
        except TelegramError as error:
            if isinstance(error, FloodWait) and (wait_s := error.retry_after_s) <= left_s:
                await self.pause(wait_s)
                await self._delete(chat_id, message_id, left_s - wait_s)
            else:
                log.warning("part not deleted", reason=type(error).__name__)

    async def _send(
        self,
        to: Destination,
        part: Part,
        marking: Callable[[], Awaitable[None]],
        former: int = 0,
        requesting: Requesting = nullcontext,
    ) -> tuple[int, Destination]:
        """Send one part until Telegram takes or refuses it; return its id and where it went.

        The id is 0 if the part is left out: its file was refused, and it says nothing else.
        After each wait the part is marked again: nothing is sent once the turn was refused. The
        part is edited into the message `former`, 0 for none. If that is refused, it is sent.
        """
        retries, asked_for = _SendRetries(part.is_rich), to.chat_id
        while True:
            try:
                if former:
                    await self._edit_shielded(to.chat_id, former, part, marking)
                    return former, to
                async for wait_s in self.chat.waits(to.chat_id):
                    await self.pause(wait_s)
                    await marking()
                async with requesting():
                    return await self._send_shielded(to, part), to
            except (FloodWait, Unreachable, BadToken) as error:
                await self.pause(retries.pause_s(error))
            except ChatMigrated as error:
                to, former = _moved(to, asked_for, error), 0
            except Refused as error:
                if former and error.reason not in ("entities", "closed"):
                    await self._delete(to.chat_id, former)
                    former = 0
                else:
                    if not (simpler := _simpler(part, error)):
                        return 0, to
                    *before, part = simpler
                    for piece in before:
                        await self._send(to, piece, marking, requesting=requesting)
            await marking()

    async def _edit_shielded(
        self, chat_id: int, message_id: int, part: Part, marking: Callable[[], Awaitable[None]]
    ) -> None:
        """Show a part in an earlier message; it may be repeated, also if the outcome is unknown.

        If this is cancelled meanwhile, delete the message if its question was erased.
        """
        if part.export_of or part.file:
            raise Refused("other", "a text cannot become a file")
        editing = asyncio.ensure_future(self.chat.edit(chat_id, message_id, part, self.timeout_s))

        async def look() -> None:
            with suppress(TelegramError):
                await editing
            with suppress(LeaseLost, StoreError):
                await self.guard(InDoubt(chat_id, message_id, was_edited=True), marking)

        try:
            await asyncio.shield(editing)
        except OutcomeUnknown as error:
            raise Unreachable(str(error)) from error
        except asyncio.CancelledError:
            await shielded(look())
            raise

    async def _send_shielded(self, to: Destination, part: Part) -> int:
        """Send a part; if this is cancelled meanwhile, wait for the part and delete it."""

        async def send() -> int:
            sent = part
            if part.export_of:
                sent = replace(part, file=await self.export(Scope(part.export_of)))
            outcome, began = "sent", time.monotonic()
            try:
                return await self.chat.send(to, sent, self.timeout_s)
            except TelegramError as error:
                outcome = type(error).__name__
                raise
            finally:
                self.observe(PartSent(outcome, time.monotonic() - began))

        async def take_back() -> None:
            with suppress(TelegramError):
                await self._delete(to.chat_id, await sending)

        sending = asyncio.ensure_future(send())
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            await shielded(take_back())
            raise


def _moved(to: Destination, asked_for: int, error: ChatMigrated) -> Destination:
    if to.chat_id != asked_for:
        raise Refused("other") from error
    # Ids of messages of the old group may be other messages in the new one.
    return replace(to, chat_id=error.new_chat_id, reply_to=0)


def _simpler(part: Part, refusal: Refused) -> Parts:
    """Return what says the same as a refused part; raise the refusal if there is nothing.

    A group may forbid files: then their text is sent, and a crash may repeat all of it. A picture
    that Telegram cannot show is sent as a document; of other files the caption is left.
    """
    if refusal.reason == "entities" and part.entities:
        return (replace(part, entities=()),)
    if part.file is None:
        raise refusal
    if part.file.kind == "photo" and part.file.content:
        return (replace(part, file=replace(part.file, kind="document")),)
    if part.file.kind != "text":
        return without_file(part)
    caption = (replace(part, file=None),) if part.text else ()
    return (*caption, *plain(part.file.content.decode()))
