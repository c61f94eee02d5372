"""Poison: a turn that fails again and again is set aside, so that its conversation goes on.

An error is seen and counted; a process that dies over a turn leaves only the count of its begins.
Operators see what was set aside with `/deadletters`; the person gets a neutral sentence.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from bot.telegram.updates import IncomingMessage, Sender, from_bytes
from bot.turn.outbox import Outbox
from memory.queue.dead_letters import DeadLetters
from memory.queue.open_turn import OpenTurn

log = structlog.get_logger(__name__)

MAX_FAILURES = 3
"""Begins of which none came to a reply, or errors, at which a turn is given up."""

UNSEEN = "Interrupted"
"""Stands for an error that nobody lived to see."""

Apologise = Callable[[Sequence[IncomingMessage], str], Outbox]
"""Returns the reply to messages that could not be answered, with a reference."""


def is_given_up(turn: OpenTurn) -> bool:
    """Say whether a turn is closed without a look at its mail: a notice is all it will get."""
    unanswered = turn.attempts >= MAX_FAILURES and not turn.outbox
    return unanswered or turn.failures >= MAX_FAILURES or _has_notice(turn)


class SetAside:
    """Sets mail aside and says what is sent instead of an answer."""

    def __init__(self, letters: DeadLetters, apologise: Apologise) -> None:
        self._letters = letters
        self._apologise = apologise

    async def outbox_of(self, turn: OpenTurn) -> Outbox:
        """Return the notice of a turn that is given up, its mail set aside; raise `LeaseLost`.

        Where the notice fails too, nothing is sent.
        """
        if _has_notice(turn) and turn.failures <= MAX_FAILURES:
            return Outbox.from_bytes(turn.outbox)
        error = turn.error or UNSEEN
        log.error("turn set aside", attempts=turn.attempts, failures=turn.failures, error=error)
        outbox = self._apology(turn)
        await self._letters.set_aside(turn, error, outbox.to_bytes())
        return outbox

    def _apology(self, turn: OpenTurn) -> Outbox:
        if turn.failures > MAX_FAILURES:
            chat = turn.lease.conversation
            return Outbox(chat.chat_id, chat.topic_id, 0, (), unread=True)
        return replace(self._apologise([_addressee(turn)], turn.id), unread=True)


def _has_notice(turn: OpenTurn) -> bool:
    return bool(turn.outbox) and Outbox.from_bytes(turn.outbox).unread


def _addressee(turn: OpenTurn) -> IncomingMessage:
    """Return to whom the apology goes; mail that cannot be read tells that by where it waits."""
    entry = turn.entries[-1]
    try:
        return from_bytes(entry.body)
    except (KeyError, TypeError, ValueError):
        chat = turn.lease.conversation
        return IncomingMessage(
            update_id=entry.update_id,
            chat_id=chat.chat_id,
            topic_id=chat.topic_id,
            is_group=chat.chat_id < 0,
            message_id=0,
            sent_at=0,
            sender=Sender(entry.sender_id, ""),
            kind="unsupported",
            text="",
        )
