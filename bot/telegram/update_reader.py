"""Reads Telegram's updates: what is for us becomes one of our values, all else is ignored by name.

Pure: stores nothing, asks nobody.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

import telegram
from telegram.constants import ChatType

from bot.reply.utf16 import well_formed
from bot.telegram.errors import UnreadableUpdate
from bot.telegram.message_text import Words, read_words
from bot.telegram.senders import clean_name, message_sender, person
from bot.telegram.updates import (
    ButtonPress,
    ChatMigration,
    Ignored,
    IncomingMessage,
    Kind,
    SentFile,
    Update,
)
from bot.telegram.values import BotIdentity

# How we name what we cannot read yet, by Telegram's own field names. The order matters: a venue is
# also a location, a live photo also a photo.
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
# Newer than the Bot API that PTB knows: arrives without text, its content unparsed.
RICH_MESSAGE = "rich_message"

ASK = "ask"
_GROUPS = frozenset({ChatType.GROUP, ChatType.SUPERGROUP})
# Telegram's number for a forum's General topic, which no call may name.
_GENERAL_TOPIC = 1
_MAX_FILE_NAME = 120
_MAX_ID = 2**63
_NONSENSE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


class UpdateReader:
    """Knows who we are, which commands are ours and whom we serve (empty: everybody).

    `commands` are in lower case, without slash.
    """

    def __init__(
        self, me: BotIdentity, commands: frozenset[str], allowed_user_ids: frozenset[int]
    ) -> None:
        self._me = me
        self._commands = commands | {ASK}
        self._allowed_user_ids = allowed_user_ids

    def read(self, raw: Mapping[str, object]) -> Update:
        """Return what the update means to us; raise `UnreadableUpdate` when it makes no sense."""
        update_id = raw.get("update_id")
        if not _is_id(update_id):
            raise UnreadableUpdate(None)
        try:
            update = self._read(update_id, raw)
        except _NONSENSE:
            # Its text may quote what somebody wrote.
            raise UnreadableUpdate(update_id) from None
        if not all(map(_is_id, _ids(update))):
            raise UnreadableUpdate(update_id)
        return update

    def _read(self, update_id: int, raw: Mapping[str, object]) -> Update:
        # Not by way of `telegram.Update`, which looks for two dozen other kinds in each.
        match raw:
            case {"message": dict(message)}:
                return self._read_message(update_id, telegram.Message.de_json(message))
            case {"callback_query": dict(query)}:
                return self._read_press(update_id, telegram.CallbackQuery.de_json(query))
            case {"my_chat_member": dict(membership)}:
                change = telegram.ChatMemberUpdated.de_json(membership)
                return self._read_membership(update_id, change)
            case {"message": odd} | {"callback_query": odd} | {"my_chat_member": odd} if odd:
                raise UnreadableUpdate(update_id)
        if "edited_message" in raw:
            return Ignored(update_id, "edit")
        if "channel_post" in raw or "edited_channel_post" in raw:
            return Ignored(update_id, "channel_post")
        return Ignored(update_id, "other")

    def _read_message(self, update_id: int, message: telegram.Message) -> Update:
        if message.migrate_to_chat_id:
            return ChatMigration(update_id, message.chat.id, message.migrate_to_chat_id)
        if message.migrate_from_chat_id:
            return ChatMigration(update_id, message.migrate_from_chat_id, message.chat.id)
        if message.chat.type == ChatType.CHANNEL or message.is_automatic_forward:
            return Ignored(update_id, "channel_post")
        sender = message_sender(message)
        if sender is None:
            return Ignored(update_id, "bot")

        is_first_party = message.forward_origin is None and message.via_bot is None
        marked = message.entities or message.caption_entities
        # Somebody else's command is not what this person asks us to do.
        entities = [each for each in marked if is_first_party or each.type != each.BOT_COMMAND]
        words = read_words(message.text or message.caption or "", entities, self._me)
        file = _file(message)
        if file and words.text.lower() == f"@{self._me.username.lower()}":
            words = replace(words, text="")  # it only says that the file is for us
        unsupported = "" if words.text or words.command or file else _unsupported_kind(message)
        is_group = message.chat.type in _GROUPS
        has_content = bool(words.text or unsupported or file)
        reason = self._not_for_us(words, message, has_content=has_content, is_group=is_group)
        if not reason and is_group and not self._serves(sender.id):
            reason = "stranger"
        if reason:
            return Ignored(update_id, reason)

        kind, text, command = _content(words, unsupported, file)
        if not self._serves(sender.id):
            kind, text, command, file = "stranger", "", "", None
        return IncomingMessage(
            update_id=update_id,
            chat_id=message.chat.id,
            topic_id=_topic_id(message),
            is_group=is_group,
            message_id=message.message_id,
            sent_at=int(message.date.timestamp()),
            sender=sender,
            kind=kind,
            text=text,
            command=command,
            file=file if kind == "document" else None,
            is_first_party=is_first_party,
            replied_to=_replied_to(message),
        )

    def _not_for_us(
        self, words: Words, message: telegram.Message, *, has_content: bool, is_group: bool
    ) -> str:
        """Return why the message is not for us, "" when it is."""
        if words.command:
            if words.command_to:
                ours = words.command_to == self._me.username.lower()
                return "" if ours else "other_bot"
            # In a group a bare command may be any bot's, even as a reply to us.
            known = not is_group or words.command in self._commands
            return "" if known else "unknown_command"
        if not has_content:
            return "service"
        addressed = not is_group or words.mentions_us or self._replies_to_us(message)
        return "" if addressed else "unaddressed"

    def _replies_to_us(self, message: telegram.Message) -> bool:
        """Tell whether it answers a message of ours.

        In a topic, whatever answers nothing else answers the notice that opened the topic, which
        is ours when we did.
        """
        replied = message.reply_to_message
        return (
            replied is not None
            and replied.from_user is not None
            and replied.from_user.id == self._me.id
            and replied.forum_topic_created is None
        )

    def _read_press(self, update_id: int, query: telegram.CallbackQuery) -> Update:
        message = query.message
        if message is None or not query.data or query.from_user.is_bot:
            return Ignored(update_id, "other")
        if not self._serves(query.from_user.id):
            return Ignored(update_id, "stranger")
        return ButtonPress(
            update_id=update_id,
            callback_id=query.id,
            chat_id=message.chat.id,
            # Of a message too old to be shown, Telegram no longer tells the topic.
            topic_id=_topic_id(message) if isinstance(message, telegram.Message) else 0,
            is_group=message.chat.type in _GROUPS,
            message_id=message.message_id,
            sender=person(query.from_user),
            callback_data=well_formed(query.data),
            asked_at=message.date.timestamp(),
        )

    def _read_membership(self, update_id: int, change: telegram.ChatMemberUpdated) -> Update:
        """Read being taken into a group as /start there; what else becomes of us is nothing."""
        before, after = change.old_chat_member, change.new_chat_member
        is_new = _is_present(after) and not _is_present(before)
        if not is_new or change.chat.type not in _GROUPS or change.from_user.is_bot:
            return Ignored(update_id, "membership")
        if not self._serves(change.from_user.id):
            return Ignored(update_id, "stranger")
        return IncomingMessage(
            update_id=update_id,
            chat_id=change.chat.id,
            topic_id=0,
            is_group=True,
            message_id=0,
            sent_at=int(change.date.timestamp()),
            sender=person(change.from_user),
            kind="command",
            text="",
            command="start",
        )

    def _serves(self, sender_id: int) -> bool:
        return not self._allowed_user_ids or sender_id in self._allowed_user_ids


def _is_id(value: object) -> TypeGuard[int]:
    """Tell whether Telegram could have given such an id: its ids fit into 64 bits."""
    return type(value) is int and -_MAX_ID <= value < _MAX_ID


def _ids(update: Update) -> tuple[object, ...]:
    """Return the numbers that the rest of the bot trusts to be numbers."""
    match update:
        case IncomingMessage():
            numbers = (update.chat_id, update.topic_id, update.message_id, update.replied_to)
            return (*numbers, update.sender.id)
        case ButtonPress():
            return update.chat_id, update.topic_id, update.message_id, update.sender.id
        case ChatMigration():
            return update.old_chat_id, update.new_chat_id
        case Ignored():
            return ()


def _content(words: Words, unsupported: str, file: SentFile | None) -> tuple[Kind, str, str]:
    """Return kind, text and command; "/ask" with words or under a file is just these."""
    if words.command and not (words.command == ASK and (words.text or file)):
        return "command", words.text, words.command
    if file:
        return "document", words.text, ""
    if unsupported:
        return "unsupported", unsupported, ""
    return "text", words.text, ""


def _file(message: telegram.Message) -> SentFile | None:
    """Return the file that somebody sent as such; an animation only looks like one."""
    document = message.document
    if document is None or message.animation:
        return None
    return SentFile(
        file_id=document.file_id,
        name=clean_name(document.file_name or "", _MAX_FILE_NAME) or "file",
        mime_type=document.mime_type or "",
        nbytes=document.file_size or 0,
    )


def _replied_to(message: telegram.Message) -> int:
    """Return what a message answers; what only stands in a topic answers the topic's notice."""
    replied = message.reply_to_message
    return replied.message_id if replied and replied.forum_topic_created is None else 0


def _is_present(member: telegram.ChatMember) -> bool:
    """Tell whether somebody is in a group, if only with less than all rights."""
    if isinstance(member, telegram.ChatMemberRestricted):
        return member.is_member
    return member.status not in (telegram.ChatMember.LEFT, telegram.ChatMember.BANNED)


def _unsupported_kind(message: telegram.Message) -> str:
    """Return the name of what somebody sent without words, "" for a service message."""
    if RICH_MESSAGE in message.api_kwargs:
        return RICH_MESSAGE
    return next((kind for kind in UNSUPPORTED_KINDS if getattr(message, kind)), "")


def _topic_id(message: telegram.Message) -> int:
    """Return the topic; a plain thread of replies has a thread id as well and is none."""
    thread_id = message.message_thread_id
    if not message.is_topic_message or thread_id is None or thread_id == _GENERAL_TOPIC:
        return 0
    return thread_id
