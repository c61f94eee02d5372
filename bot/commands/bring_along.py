"""`/import`, and the buttons under a preview: talks from another assistant are stored in a turn."""

from dataclasses import replace

import orjson

from bot.commands.bot_command import Answer
from bot.commands.later_presses import message_of, put_press
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage, SentFile
from memory.erasure.confirmations import Confirmations
from memory.queue.mailbox import Mailbox
from memory.store.keys import Scope


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
        return await self._take(pressed, here, nonce, "")

    async def read_document(
        self, pressed: ButtonPress, here: Scope, nonce: str
    ) -> tuple[Part, ...]:
        """Let a turn read the file as a document, although it looks like a list."""
        return await self._take(pressed, here, nonce, "document")

    async def _take(
        self, pressed: ButtonPress, here: Scope, nonce: str, read_as: str
    ) -> tuple[Part, ...]:
        about = await self._confirmations.check(here, nonce, "import", pressed.sender.id)
        if not about:
            return ()
        file_id, name, mime_type, nbytes, pasted = orjson.loads(about)
        agreed_by = "" if read_as else nonce
        file = SentFile(file_id, name, mime_type, nbytes, agreed_by, pasted, read_as)
        agreed = replace(message_of(pressed), kind="document", file=file)
        if not await put_press(self._mailbox, here, agreed):
            return ()
        return self._sentences.say(pressed.sender.language, "import.storing")

    async def refuse(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Forget the question; nothing was stored but that."""
        await self._confirmations.cancel(here, nonce, pressed.sender.id)
        return self._sentences.say(pressed.sender.language, "import.refused")
