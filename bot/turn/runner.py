"""One turn, from what was said to its commit: answer, outbox, deliver, commit, learn.

Takes over the outbox of a dead holder; then nothing is answered anew.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import structlog

from bot.telegram.updates import IncomingMessage, from_bytes
from bot.turn.deliver import Deliverer, Delivery, Parked
from bot.turn.hooks import TurnHooks, call_context_of
from bot.turn.outbox import Outbox
from bot.turn.setting_aside import SetAside, is_given_up
from memory.memory import Memory
from memory.message import Message
from memory.queue.open_turn import Closing, Committed, OpenTurn
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_SPOKEN = ("text", "document")
"""Kinds of mail whose text is a person's words."""


class Answerer(Protocol):
    """Turns what was said into a reply."""

    async def answer(
        self, mail: Sequence[IncomingMessage], words: Message, history: ChatHistory
    ) -> Outbox:
        """Return the reply to one person's messages; never raises for trouble with the model."""
        ...

    def apologise(self, mail: Sequence[IncomingMessage], reference: str) -> Outbox:
        """Return the reply to messages that could not be answered."""
        ...


class TurnRunner:
    """Runs turns; several at once, each of another conversation."""

    def __init__(
        self,
        memory: Memory,
        tokens: TokenCounter,
        answerer: Answerer,
        deliverer: Deliverer,
        hooks: TurnHooks,
        learn: Callable[[Scope], None],
    ) -> None:
        self._memory = memory
        self._tokens = tokens
        self._answerer = answerer
        self._deliverer = deliverer
        self._hooks = hooks
        self._learn = learn
        self._poison = SetAside(memory.dead_letters, answerer.apologise)

    async def run(self, turn: OpenTurn) -> Committed:
        """Answer, deliver and commit; raise `LeaseLost`, `Parked` or `StoreError`."""
        began = time.monotonic()
        if is_given_up(turn):
            committed, outcome = await self._set_aside(turn)
            _report(turn, outcome, began)
            return committed
        mail = [from_bytes(entry.body) for entry in turn.entries]
        words = joined(mail, self._tokens)
        history = await ChatHistory.of_turn(self._memory.histories, turn)
        outbox = await self._outbox(turn, mail, words, history)
        delivery = await self._deliver(turn, outbox)
        messages = self._to_remember(words, outbox, delivery)
        committed = await self._commit(turn, outbox, delivery, messages)
        if messages:
            history.committed(messages, committed.exchange, committed.first_seq)
        if messages or outbox.ends_session:
            self._learn(turn.lease.conversation)
            call_context = call_context_of(mail[-1], turn.lease.conversation)
            await self._hooks.end(call_context, messages, ends_session=outbox.ends_session)
        _report(turn, delivery.outcome, began, parts=len(outbox.parts))
        return committed

    async def _set_aside(self, turn: OpenTurn) -> tuple[Committed, str]:
        """Close a turn that is given up: a notice goes out, its mail is neither read nor lost."""
        outbox = await self._poison.outbox_of(turn)
        delivery = await self._deliver(replace(turn, sending=0, sent=()), outbox)
        return await self._commit(turn, outbox, delivery, []), delivery.outcome

    async def _outbox(
        self, turn: OpenTurn, mail: Sequence[IncomingMessage], words: Message, history: ChatHistory
    ) -> Outbox:
        if turn.outbox:
            return Outbox.from_bytes(turn.outbox)
        outbox = await self._answerer.answer(mail, words, history)
        await self._memory.turns.write_outbox(turn.lease, outbox.to_bytes())
        return outbox

    async def _deliver(self, turn: OpenTurn, outbox: Outbox) -> Delivery:
        async def mark(part: int, sent: tuple[int, ...]) -> None:
            await self._memory.turns.mark_sending(turn, part, sent)

        try:
            return await self._deliverer.deliver(outbox, turn.sending, turn.sent, mark)
        except Parked as parked:
            await self._memory.turns.park(turn.lease, int(parked.pause_s * 1000))
            raise

    async def _commit(
        self, turn: OpenTurn, outbox: Outbox, delivery: Delivery, messages: Sequence[Message]
    ) -> Committed:
        known = self._memory.cursor(turn.lease.conversation)
        closing = Closing(outbox.ends_session, outbox.digest, outbox.writes.encode())
        commit = self._memory.turns.commit(turn, messages, replace(known, seq=0), closing=closing)
        return await self._deliverer.guard(delivery.chat_id, delivery.in_doubt, commit)

    def _to_remember(self, words: Message, outbox: Outbox, delivery: Delivery) -> list[Message]:
        """Return what enters the history: the words, and the reply only if it was delivered."""
        if not words.text or outbox.unread:
            return []
        if outbox.refused:
            return [replace(words, is_refused=True)]
        if not outbox.said or delivery.outcome == "undeliverable":
            return [words]
        said = Message(
            seq=0,
            exchange=0,
            role="assistant",
            text=outbox.said,
            sent_at=time.time(),
            message_ids=delivery.sent,
            tokens=self._tokens.count(outbox.said),
            is_first_party=not outbox.untrusted,
        )
        return [words, said]


def joined(mail: Sequence[IncomingMessage], tokens: TokenCounter) -> Message:
    """Join quick successive messages of one person into one, as old as the first of them.

    For who asks to be forgotten between two of them wants the first one gone.
    """
    text = "\n".join(inbound.text for inbound in mail if inbound.kind in _SPOKEN)
    return Message(
        seq=0,
        exchange=0,
        role="user",
        text=text,
        sent_at=mail[0].sent_at,
        sender_id=mail[-1].sender.id,
        sender_name=mail[-1].sender.name,
        message_ids=tuple(inbound.message_id for inbound in mail),
        tokens=tokens.count(text),
        is_first_party=all(inbound.is_first_party for inbound in mail),
    )


def _report(turn: OpenTurn, outcome: str, began: float, parts: int = 1) -> None:
    log.info(
        "turn closed",
        outcome=outcome,
        messages=len(turn.entries),
        parts=parts,
        attempts=turn.attempts,
        seconds=round(time.monotonic() - began, 3),
    )
