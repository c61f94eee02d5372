"""`/import`, and the buttons under a preview: talks from another assistant are stored in a turn."""

import time

import orjson
import structlog

from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage, SentFile, to_bytes
from memory.erasure.confirmations import Confirmations
from memory.queue.mailbox import Entry, Mailbox, MailboxFull
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


class ImportCommand:
    """Says how to bring memories along, and hears the answers to previews."""

    def __init__(
        self, confirmations: Confirmations, mailbox: Mailbox, sentences: Sentences
    ) -> None:
        self._confirmations = confirmations
        self._mailbox = mailbox
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say what can be sent, and where other assistants give it."""
        key = "import.only_private" if asked.is_group else "import.how"
        return Answer(self._sentences.say(asked.sender.language, key))

    async def agree(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Put the file into the mailbox again, now with the agreement; its turn stores it."""
        about = await self._confirmations.check(here, nonce, "import", pressed.sender.id)
        if not about:
            return ()
        file_id, name, mime_type, nbytes, pasted = orjson.loads(about)
        agreed = IncomingMessage(
            update_id=pressed.update_id,
            chat_id=pressed.chat_id,
            topic_id=pressed.topic_id,
            is_group=pressed.is_group,
            message_id=pressed.message_id,
            sent_at=int(time.time()),
            sender=pressed.sender,
            kind="document",
            text="",
            file=SentFile(file_id, name, mime_type, nbytes, nonce, pasted),
        )
        entry = Entry(pressed.update_id, pressed.sender.id, is_command=True, body=to_bytes(agreed))
        try:
            await self._mailbox.put(here, entry)
        except MailboxFull:
            log.warning("mailbox full", conversation=here.tag, sender=pressed.sender.id)
            return ()
        return self._sentences.say(pressed.sender.language, "import.storing")

    async def refuse(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Forget the question; nothing was stored but that."""
        await self._confirmations.cancel(here, nonce, pressed.sender.id)
        return self._sentences.say(pressed.sender.language, "import.refused")
