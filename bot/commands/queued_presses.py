"""Button presses that wait in the mailbox like a message, because a turn has to answer them."""

import time

import structlog

from bot.telegram.packing import to_bytes
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.queue.mailbox import Entry, Mailbox, MailboxFull
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


def message_of(pressed: ButtonPress) -> IncomingMessage:
    """Return a command without name and text; the caller sets what its turn needs."""
    return IncomingMessage(
        update_id=pressed.update_id,
        chat_id=pressed.chat_id,
        topic_id=pressed.topic_id,
        is_group=pressed.is_group,
        message_id=pressed.message_id,
        sent_at=int(time.time()),
        sender=pressed.sender,
        kind="command",
        text="",
    )


async def put_press(mailbox: Mailbox, here: Scope, message: IncomingMessage) -> bool:
    """Put the message of a press into the mailbox; return whether there was room."""
    body = to_bytes(message)
    entry = Entry(message.update_id, message.sender.id, is_command=True, body=body)
    try:
        await mailbox.put(here, entry)
    except MailboxFull:
        log.warning("mailbox full", conversation=here.tag, sender=message.sender.id)
        return False
    return True
