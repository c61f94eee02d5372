"""The words of a message as they concern us: is it a command, for whom, and are we mentioned.

Goes by the entities that Telegram has marked, so an address in a code block calls nobody.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import telegram

from bot.reply.utf16 import utf16_slice, well_formed
from bot.telegram.values import BotIdentity

_AFTER_MENTION = ",:;"


@dataclass(frozen=True, slots=True)
class Words:
    """`text` is what was said: without the command, or without a mention of us in front.

    `command` and `command_to` are in lower case, without "/" and "@"; "" where there is none.
    """

    text: str
    command: str = ""
    command_to: str = ""
    mentions_us: bool = False


def read_words(text: str, entities: Iterable[telegram.MessageEntity], me: BotIdentity) -> Words:
    """Sort out a text or caption; a lone mention of us stays, so that there is something to say."""
    text = well_formed(text)
    mentions = []
    for entity in entities:
        end = entity.offset + entity.length
        if entity.type == telegram.MessageEntity.BOT_COMMAND and entity.offset == 0:
            command, _, bot = utf16_slice(text, 1, end).lower().partition("@")
            return Words(utf16_slice(text, end).strip(), command, bot)
        if _mentions(entity, text, me):
            mentions.append(entity)
    said = text.strip()
    for mention in mentions:
        if mention.offset == 0:
            rest = utf16_slice(text, mention.length).lstrip()
            said = rest.lstrip(_AFTER_MENTION).strip() or said
    return Words(said, mentions_us=bool(mentions))


def _mentions(entity: telegram.MessageEntity, text: str, me: BotIdentity) -> bool:
    if entity.type == telegram.MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == me.id
    if entity.type != telegram.MessageEntity.MENTION:
        return False
    mention = utf16_slice(text, entity.offset, entity.offset + entity.length)
    return mention.lower() == f"@{me.username.lower()}"
