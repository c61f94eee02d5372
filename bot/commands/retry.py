"""`/retry`, and the button under an apology: a question is asked once more.

Both wait in the mailbox; `bot.turn.revision` carries them out in the conversation's order.
"""

import time

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage, to_bytes
from memory.erasure.confirmations import Confirmations
from memory.queue.mailbox import Entry, Mailbox, MailboxFull
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


class RetryCommand:
    """Has the newest question, or the one under an apology, answered again."""

    def __init__(
        self, confirmations: Confirmations, access: Access, mailbox: Mailbox, sentences: Sentences
    ) -> None:
        self._confirmations = confirmations
        self._access = access
        self._mailbox = mailbox
        self._sentences = sentences

    async def nothing_to_retry(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say that there is no question."""
        return Answer(self._sentences.say(asked.sender.language, "retry.nothing"))

    async def press(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Put the question into its place in the conversation; the reply replaces the apology."""
        about = await self._confirmations.check(here, nonce, "again", None)
        if not about:
            return ()
        message_id, asker = map(int, about.split(","))
        await self._access.check(pressed, [asker])
        again = IncomingMessage(
            update_id=pressed.update_id,
            chat_id=pressed.chat_id,
            topic_id=pressed.topic_id,
            is_group=pressed.is_group,
            message_id=pressed.message_id,
            sent_at=int(time.time()),
            sender=pressed.sender,
            kind="again",
            text=nonce,
            replied_to=message_id,
        )
        entry = Entry(pressed.update_id, pressed.sender.id, is_command=True, body=to_bytes(again))
        try:
            await self._mailbox.put(here, entry)
        except MailboxFull:
            log.warning("mailbox full", conversation=here.tag, sender=pressed.sender.id)
        return ()
