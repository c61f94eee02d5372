"""`/export`: all that is stored of this chat as a file.

The file is made at the moment it is sent and stored nowhere; the outbox only says that there is
one, so that its delivery has the guarantees of every part.
"""

from dataclasses import replace

import structlog

from bot.commands.access import asker_of
from bot.commands.general import Answer, admins_only
from bot.commands.sentences import Sentences
from bot.reply.parts import OutgoingFile
from bot.telegram.chat import Chat
from bot.telegram.updates import IncomingMessage
from memory.behaviors.call_context import may_change
from memory.erasure.export import Exporter
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


class ExportCommand:
    """Answers with a part that stands for a file; in a group only to its administrators."""

    def __init__(self, exporter: Exporter, sentences: Sentences, telegram: Chat) -> None:
        self._exporter = exporter
        self._sentences = sentences
        self._telegram = telegram

    async def export(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Say what the file holds; it goes with these words."""
        language = asked.sender.language
        if not await may_change(asker_of(asked, self._telegram)):
            log.info("group export refused", user=asked.sender.id)
            key = admins_only(asked, "export.only_group_admins")
            return Answer(self._sentences.say(language, key))
        # Once to know what it will hold; it is made again when it is sent.
        left_out = (await self._exporter.export(conversation)).left_out
        keys = ["export.group" if asked.is_group else "export.private"]
        keys += ["export.left_out"] if left_out else []
        (said,) = self._sentences.say(language, *keys, left_out=left_out)
        return Answer((replace(said, export_of=conversation.tag),))


async def export_file(exporter: Exporter, conversation: Scope) -> OutgoingFile:
    """Return everything that is stored of a conversation as a file; raise `StoreError`."""
    export = await exporter.export(conversation)
    return OutgoingFile(export.name, export.content)
