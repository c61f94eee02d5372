"""`/export`: all that is stored of this chat as a file.

The file is made at the moment it is sent and stored nowhere; the outbox only says that there is
one, so that its delivery has the guarantees of every part.
"""

from dataclasses import replace
from typing import Protocol

import structlog

from bot.commands.askers import GroupAdmins, asker_of
from bot.commands.everyone import Answer, admins_only
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.updates import IncomingMessage
from bot.telegram.values import OutgoingFile
from memory.erasure.export import Exporter
from memory.erasure.ownership import may_change
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


class ExportCommand:
    """Answers with a part that stands for a file; in a group only to its administrators."""

    def __init__(self, exporter: Exporter, sentences: Sentences, telegram: GroupAdmins) -> None:
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


class PartSender(Protocol):
    """Sends text and files; all raise `TelegramError`."""

    async def send(
        self, chat_id: int, topic_id: int, part: Part, reply_to: int | None, timeout_s: float
    ) -> int:
        """Send one part and return its message id."""
        ...

    async def send_file(
        self,
        chat_id: int,
        topic_id: int,
        file: OutgoingFile,
        reply_to: int | None,
        timeout_s: float,
    ) -> int:
        """Send a file and return the message id."""
        ...

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete one of our messages."""
        ...


class ExportingSender:
    """Sends parts; the one that stands for an export goes with the file, made now."""

    def __init__(self, telegram: PartSender, exporter: Exporter) -> None:
        self._telegram = telegram
        self._exporter = exporter

    async def send(
        self, chat_id: int, topic_id: int, part: Part, reply_to: int | None, timeout_s: float
    ) -> int:
        """Send one part; return its message id or raise `TelegramError` or `StoreError`."""
        if not part.export_of:
            return await self._telegram.send(chat_id, topic_id, part, reply_to, timeout_s)
        export = await self._exporter.export(Scope(part.export_of))
        file = OutgoingFile(export.name, export.content, caption=part)
        return await self._telegram.send_file(chat_id, topic_id, file, reply_to, timeout_s)

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete one of our messages or raise `TelegramError`."""
        await self._telegram.delete(chat_id, message_id)
