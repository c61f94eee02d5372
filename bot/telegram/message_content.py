"""Reads one Telegram message: its content, its sender and its topic.

Pure functions on python-telegram-bot's types. Whether the message is for us is decided by
`update_reader`.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

import telegram
from telegram.constants import ChatType

from bot.reply.utf16 import utf16_slice, well_formed
from bot.telegram.bot_account import BotIdentity
from bot.telegram.spelled import RICH_MESSAGE, spelled
from bot.telegram.updates import ChatMigration, MessageKind, Sender, SentFile, TopicNamed

ASK = "ask"

# What we cannot read yet, by Telegram's own field names. The order matters: a venue is also a
# location, and a live photo is also a photo.
UNSUPPORTED_KINDS = (
    "voice",
    "video_note",
    "audio",
    "animation",
    "video",
    "live_photo",
    "photo",
    "sticker",
    "venue",
    "location",
    "contact",
    "poll",
    "dice",
    "game",
    "story",
    "paid_media",
    "checklist",
    "giveaway",
    "invoice",
)
_GENERAL_TOPIC = 1
"""Telegram's id for the General topic of a forum, which no call may name."""

_AFTER_MENTION = ",:;"
_MAX_NAME_CHARS = 64
_MAX_FILE_NAME_CHARS = 120
# Persian letters are joined by one, emoji by the other. All other format characters only hide.
_JOINERS = "\u200c\u200d"
_TO_SPACE = {"Cc", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class MessageText:
    """The text of a message without the command, or without a mention of us at the beginning.

    `command` and `command_to` are in lower case, without "/" and "@"; "" if there is none.
    """

    text: str
    command: str = ""
    command_to: str = ""
    mentions_us: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """What a message says. `unsupported` names what we cannot read if it says nothing else.

    `unseen` names the photo, video or sound that came with the text; "" if there was none.
    """

    said: MessageText
    file: SentFile | None = None
    unsupported: str = ""
    unseen: str = ""


def read_content(message: telegram.Message, me: BotIdentity) -> Content:
    """Return the content of a message."""
    marked = message.entities or message.caption_entities
    if not is_first_party(
        message
    ):  # a command that somebody else wrote is no request of the sender
        marked = tuple(each for each in marked if each.type != each.BOT_COMMAND)
    said = read_text(message.text or message.caption or spelled(message), marked, me)
    if RICH_MESSAGE in message.api_kwargs and f"@{me.username}".lower() in said.text.lower():
        said = replace(said, mentions_us=True)  # rich messages have no entities
    file = read_file(message)
    if file and said.text.lower() == f"@{me.username.lower()}":
        said = replace(said, text="")  # the mention only says that the file is for us
    if not (said.text or said.command or file):
        return Content(said, unsupported=unsupported_kind(message))
    return Content(said, file, unseen=unsupported_kind(message) if message.caption else "")


def is_first_party(message: telegram.Message) -> bool:
    """Return whether the sender wrote it: not forwarded, and not sent through another bot."""
    return message.forward_origin is None and message.via_bot is None


def read_text(
    text: str, entities: Iterable[telegram.MessageEntity], me: BotIdentity
) -> MessageText:
    """Read a text or a caption. A message that is only a mention of us keeps the mention as text.

    Only the entities that Telegram marked count, so an address in a code block mentions nobody.
    """
    text = well_formed(text)
    mentions = []
    for entity in entities:
        end = entity.offset + entity.length
        if entity.type == telegram.MessageEntity.BOT_COMMAND and entity.offset == 0:
            command, _, bot = utf16_slice(text, 1, end).lower().partition("@")
            return MessageText(utf16_slice(text, end).strip(), command, bot)
        if _mentions_us(entity, text, me):
            mentions.append(entity)
    shown = text.strip()
    for mention in mentions:
        if mention.offset == 0:
            rest = utf16_slice(text, mention.length).lstrip()
            shown = rest.lstrip(_AFTER_MENTION).strip() or shown
    return MessageText(shown, mentions_us=bool(mentions))


def _mentions_us(entity: telegram.MessageEntity, text: str, me: BotIdentity) -> bool:
    if entity.type == telegram.MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == me.id
    if entity.type != telegram.MessageEntity.MENTION:
        return False
    mention = utf16_slice(text, entity.offset, entity.offset + entity.length)
    return mention.lower() == f"@{me.username.lower()}"


def read_sender(message: telegram.Message) -> Sender | None:
    """Return the author of a message, None for a bot.

    `sender_chat` is read first: a channel or group that writes in its own name has a made-up bot as
    its user. An anonymous admin writes as the group itself.
    """
    if message.sender_chat:
        chat = message.sender_chat
        name = clean_name(chat.title or "") or chat.username or str(chat.id)
        return Sender(id=chat.id, name=name, is_person=False)
    if message.from_user is None or message.from_user.is_bot:
        return None
    return read_person(message.from_user)


def read_person(user: telegram.User) -> Sender:
    """Return a person. If nothing of the name is visible, username or id is used as the name."""
    return Sender(
        id=user.id,
        name=clean_name(user.full_name) or user.username or str(user.id),
        first_name=clean_name(user.first_name),
        last_name=clean_name(user.last_name or ""),
        language=user.language_code or "en",
    )


def clean_name(name: str, max_chars: int = _MAX_NAME_CHARS) -> str:
    """Return one line of visible characters: names are untrusted text in prompts and logs."""
    shown = "".join(_visible(character) for character in well_formed(name))
    return " ".join(shown.split())[:max_chars].rstrip()


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in _TO_SPACE:
        return " "
    if category == "Cf" and character not in _JOINERS:
        return ""
    return character


def read_file(message: telegram.Message) -> SentFile | None:
    """Return the file that was sent as a document. An animation only looks like one."""
    document = message.document
    if document is None or message.animation:
        return None
    return SentFile(
        file_id=document.file_id,
        name=clean_name(document.file_name or "", _MAX_FILE_NAME_CHARS) or "file",
        mime_type=document.mime_type or "",
        nbytes=document.file_size or 0,
    )


def unsupported_kind(message: telegram.Message | telegram.ExternalReplyInfo) -> str:
    """Return the name of content that we cannot read, "" for a service message."""
    if RICH_MESSAGE in message.api_kwargs:
        return RICH_MESSAGE
    return next((kind for kind in UNSUPPORTED_KINDS if getattr(message, kind, None)), "")


def replied_message(message: telegram.Message) -> telegram.Message | None:
    """Return the message that this one answers.

    Telegram shows every plain message in a topic as a reply to the notice that opened the topic.
    That is not an answer.
    """
    replied = message.reply_to_message
    return None if replied is None or replied.forum_topic_created else replied


def topic_id(message: telegram.Message) -> int:
    """Return the topic, 0 if none. A plain thread of replies has a thread id but is not a topic."""
    thread_id = message.message_thread_id
    if not message.is_topic_message or thread_id is None or thread_id == _GENERAL_TOPIC:
        return 0
    return thread_id


def read_notice(update_id: int, message: telegram.Message) -> ChatMigration | TopicNamed | None:
    """Read a service message that is for us, None for any other message."""
    chat = message.chat
    if message.migrate_to_chat_id:
        return ChatMigration(update_id, chat.id, message.migrate_to_chat_id)
    if message.migrate_from_chat_id:
        return ChatMigration(update_id, message.migrate_from_chat_id, chat.id)
    created, edited = message.forum_topic_created, message.forum_topic_edited
    is_named = created or (edited and edited.name)
    if is_named and chat.type == ChatType.PRIVATE:
        is_by_person = not (created and created.is_name_implicit)
        return TopicNamed(update_id, chat.id, topic_id(message), is_by_person)
    return None


def is_present(member: telegram.ChatMember) -> bool:
    """Return whether somebody is in a group, even with restricted rights."""
    if isinstance(member, telegram.ChatMemberRestricted):
        return member.is_member
    return member.status not in (telegram.ChatMember.LEFT, telegram.ChatMember.BANNED)


def kind_of(content: Content) -> tuple[MessageKind, str, str]:
    """Return kind, text and command. "/ask" with a text or under a file is an ordinary message."""
    said = content.said
    if said.command and not (said.command == ASK and (said.text or content.file)):
        return "command", said.text, said.command
    if content.file:
        return "document", said.text, ""
    if content.unsupported:
        return "unsupported", content.unsupported, ""
    return "text", said.text, ""
