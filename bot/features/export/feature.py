"""`/export`: everything that is stored of this chat as a file; in a group only for its admins.

The file is made when it is sent and is never stored. The outbox only says that there is one, so
that its delivery has the same guarantees as any part.
"""

from dataclasses import replace

from bot.commands.bot_command import Answer, BotCommand
from bot.feature import Feature, Services
from bot.telegram.updates import IncomingMessage
from memory.store.keys import Scope


def feature(services: Services) -> Feature:
    """Return the feature."""

    async def export(asked: IncomingMessage, conversation: Scope) -> Answer:
        """Say what the file holds; the text goes with the file."""
        # Made here only to know what it leaves out; it is made again when it is sent.
        left_out = (await services.memory.exporter.export(conversation)).left_out
        keys = ["export.group" if asked.is_group else "export.private"]
        keys += ["export.left_out"] if left_out else []
        (part,) = services.sentences.say(asked.sender.language, *keys, left_out=left_out)
        return Answer((replace(part, export_of=conversation.tag),))

    command = BotCommand("export", export, group_admins_only=True, section="data")
    return Feature(name="export", commands=(command,))
