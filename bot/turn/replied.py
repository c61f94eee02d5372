"""Finds the messages that a person replies to: in our log, else as Telegram gave them.

What Telegram gave with a reply is used for this turn only and never stored. So a reply to a message
that was erased does not bring it back.
"""

from dataclasses import replace

from bot.telegram.updates import ReplyTarget
from bot.turn.request import Request
from memory.message import Message, RepliedTo
from memory.scopes.history import ChatHistory

_MAX_REPLIES = 3
_MAX_DIFFERENCE_S = 86_400
"""When a group becomes a supergroup its message ids begin again. So a message in our log must also
have about the right time. Telegram delivers messages up to a day late."""


async def find_replied(request: Request, history: ChatHistory) -> tuple[RepliedTo, ...]:
    """Return what the newest messages of a turn reply to, oldest first; raise `LeaseLost`.

    The log's text counts, however old. Without it, Telegram's text does. A message that the model's
    server refused is left out. If a question is asked again, its log entry says what it replied to.
    """
    targets = [update.reply for update in request.updates if update.reply]
    if not targets and request.message.replied_to:
        targets = [ReplyTarget(request.message.replied_to, author="", sent_at=0, text="")]
    found = []
    for target in list(dict.fromkeys(targets))[-_MAX_REPLIES:]:
        if target.message_id in request.message.message_ids:
            continue  # it is being answered in this very turn
        stored = await _stored(history, target)
        if stored is None and target.author:
            found.append(RepliedTo(_given(target), quote=target.quote))
        elif stored and not stored.is_refused:
            question = _question(history, stored)
            question = _untrusted_of_others(question, request) if question else None
            message = _untrusted_of_others(stored, request)
            found.append(RepliedTo(message, question, target.quote))
    return tuple(found)


async def _stored(history: ChatHistory, target: ReplyTarget) -> Message | None:
    if not target.message_id:
        return None
    if (message := _in_memory(history, target)) is None:
        await history.fill()  # nothing to read if the process has the whole history already
        message = _in_memory(history, target)
    return message


def _in_memory(history: ChatHistory, target: ReplyTarget) -> Message | None:
    return next(
        (
            message
            for message in reversed(history.messages)
            if target.message_id in message.message_ids
            and abs(message.sent_at - (target.sent_at or message.sent_at)) < _MAX_DIFFERENCE_S
        ),
        None,
    )


def _question(history: ChatHistory, answer: Message) -> Message | None:
    """Return the question of one of our answers, unless it was taken out of recall."""
    if answer.role != "assistant":
        return None
    exchange = (each for each in history.messages if each.exchange == answer.exchange)
    question = next((each for each in exchange if each.role == "user"), None)
    return None if question is None or question.seq in history.hidden else question


def _untrusted_of_others(message: Message, request: Request) -> Message:
    """Return the message; what another person wrote is untrusted for the one who points at it."""
    is_other = message.role == "user" and message.sender_id != request.message.sender_id
    return replace(message, is_first_party=message.is_first_party and not is_other)


def _given(target: ReplyTarget) -> Message:
    """Return what Telegram gave; only the sender's own words are not untrusted."""
    return Message(
        seq=0,
        exchange=0,
        role="assistant" if target.is_ours else "user",
        text=target.text,
        sent_at=target.sent_at,
        sender_id=target.author_id,
        sender_name=target.author,
        is_first_party=target.is_own,
        unseen=target.unseen,
    )
