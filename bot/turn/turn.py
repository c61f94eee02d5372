"""One turn, from what was sent to its commit: answer, write the outbox, deliver, commit.

If the outbox exists, even from another worker, the model is not asked again: the turn is only
delivered and committed.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import structlog

from bot.turn.after import AfterTurn
from bot.turn.answer import Answerer
from bot.turn.deliver import Deliverer, Delivery
from bot.turn.give_up import is_given_up
from bot.turn.outbox import Outbox
from bot.turn.patience import Parked
from bot.turn.request import Request, unpack, with_words
from memory.message import Message
from memory.queue.open_turn import Closing, Committed, OpenTurn
from memory.queue.turns import TurnStore
from memory.scopes.history import ChatHistory, HistoryParts
from memory.store.errors import StoreFull

log = structlog.get_logger(__name__)


class TurnRunner:
    """Runs turns: several at once, but never two of one conversation."""

    def __init__(
        self,
        queue: TurnStore,
        histories: HistoryParts,
        answerer: Answerer,
        deliverer: Deliverer,
        after: AfterTurn,
    ) -> None:
        self._queue = queue
        self._histories = histories
        self._answerer = answerer
        self._deliverer = deliverer
        self._after = after

    async def run(self, opened: OpenTurn) -> Committed:
        """Answer, deliver and commit.

        Raise `LeaseLost`, `Interrupted`, `Parked` or `StoreError`.
        """
        began = time.monotonic()
        with self._after.observed(opened) as begin:
            if is_given_up(opened):
                return await self._give_up(opened, began)
            request = unpack(opened, self._histories.tokens)
            history = await self._history(opened, request)
            async with self._after.suspended(request, history.conversation):
                if opened.outbox:
                    outbox = Outbox.from_bytes(opened.outbox)
                else:
                    # An edit has no reply of its own: the question that it becomes is stopped.
                    if opened.is_stopped and request.last.kind != "edit":
                        outbox = await self._answerer.stop(request, history)
                    else:
                        outbox = await self._answerer.answer(request, history)
                    if request.replaces:
                        outbox = replace(outbox, replaces=request.replaces, rich_parts=0)
                    begin("outbox")
                    outbox = await self._stored(opened, outbox)
                if outbox.heard:
                    request = with_words(request, outbox.heard, self._histories.tokens)
                begin("delivery")
                delivery = await self._deliver(opened, outbox)
                begin("commit")
                messages = self._to_remember(request, outbox, delivery)
                closing = _closing(request, outbox)
                committed = await self._commit(opened, delivery, messages, closing)
                if messages and not request.is_off_record:
                    history.committed(messages, committed.exchange, committed.first_seq)
                begin("after")
                await self._after.closed(request, history.conversation, outbox, messages)
                _log_closed(opened, outbox, delivery, began)
                return committed

    async def _stored(self, opened: OpenTurn, outbox: Outbox) -> Outbox:
        """Store the reply; without the bytes of files if Redis has no room for them."""
        if outbox.has_contents:
            stored = outbox.to_bytes()
            with suppress(StoreFull):
                if len(stored) <= self._queue.room():
                    await self._queue.write_outbox(opened, stored)
                    return outbox
            log.warning("no room for files of an answer", bytes=len(stored))
            outbox = outbox.without_contents()
        await self._queue.write_outbox(opened, outbox.to_bytes())
        return outbox

    async def _history(self, opened: OpenTurn, request: Request) -> ChatHistory:
        conversation = opened.lease.conversation
        if opened.off_record and request.is_off_record:
            return opened.off_record.history(self._histories, conversation)
        return await ChatHistory.of_turn(self._histories, conversation, opened.loaded, opened.facts)

    async def _give_up(self, opened: OpenTurn, began: float) -> Committed:
        """Close a turn that failed too often with a notice; its messages are not even unpacked."""
        outbox = await self._answerer.give_up(opened)
        # The notice replaces the reply, so nothing of the reply counts as sent.
        delivery = await self._deliver(replace(opened, sending=0, sent=()), outbox)
        committed = await self._commit(opened, delivery, [], Closing())
        _log_closed(opened, outbox, delivery, began)
        return committed

    async def _deliver(self, opened: OpenTurn, outbox: Outbox) -> Delivery:
        async def mark(part: int, sent: tuple[int, ...]) -> None:
            await self._queue.mark_sending(opened, part, sent)

        try:
            return await self._deliverer.deliver(outbox, opened.sending, opened.sent, mark)
        except Parked as parked:
            await self._queue.park(opened.lease, int(parked.pause_s * 1000))
            raise

    async def _commit(
        self, opened: OpenTurn, delivery: Delivery, messages: Sequence[Message], closing: Closing
    ) -> Committed:
        cursor = self._histories.cursor(opened.lease.conversation)
        commit = self._queue.commit(opened, messages, cursor, closing=closing)
        return await self._deliverer.guard(delivery.chat_id, delivery.in_doubt, commit)

    def _to_remember(self, request: Request, outbox: Outbox, delivery: Delivery) -> list[Message]:
        """Return what enters the history: the messages, and the reply unless undeliverable."""
        if not request.message.text or outbox.is_unread:
            return []
        if outbox.is_refused:
            return [replace(message, is_refused=True) for message in request.messages]
        if not outbox.said or delivery.outcome == "undeliverable":
            return [*request.messages]
        reply = Message(
            seq=0,
            exchange=0,
            role="assistant",
            text=outbox.said,
            sent_at=time.time(),
            message_ids=delivery.sent,
            tokens=self._histories.tokens.count(outbox.said),
            is_first_party=not outbox.is_untrusted,
            used=outbox.used,
        )
        return [*request.messages, reply]


def _closing(request: Request, outbox: Outbox) -> Closing:
    if request.is_off_record:
        return Closing(outbox.ends_session, is_off_record=True)
    return Closing(outbox.ends_session, outbox.digest, outbox.writes.encode(), outbox.reminders)


def _log_closed(opened: OpenTurn, outbox: Outbox, delivery: Delivery, began: float) -> None:
    log.info(
        "turn closed",
        outcome=delivery.outcome,
        messages=len(opened.entries),
        parts=len(outbox.parts),
        attempts=opened.attempts,
        seconds=round(time.monotonic() - began, 3),
    )
