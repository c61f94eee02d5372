"""Reads one Telegram message: its content, its topic, and what it replies to.

Names and texts come from other people and are bounded here. A sticker, a place, a poll or a rich
message has no text, and is said in words, the same in every language. The Bot API library does not
know rich messages (Bot API 10.1), so their raw JSON is read here, and no more of it than Telegram's
own limits allow, whatever was sent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import telegram
from telegram.constants import ChatType

from bot.parsing.pictures import MAX_PIXELS
from bot.reply.parts import utf16_slice, well_formed
from bot.telegram.bot_api import BotIdentity
from bot.telegram.updates import (
    FILE_MARK,
    PHOTO_MARK,
    STICKER_FILE,
    ChatMigration,
    MediaKind,
    ReplyTarget,
    Sender,
    SentFile,
    TopicNamed,
    clean_name,
)

RICH_MESSAGE = "rich_message"
"""Newer than the Bot API that PTB knows: its content is read from the raw JSON."""

# Content beside text and documents, by Telegram's own field names. `read_media` reads some of it.
# The order matters: a venue is also a location, and a live photo is also a photo.
UNSUPPORTED_KINDS = (
    *("voice", "video_note", "audio", "animation", "video", "live_photo", "photo", "sticker"),
    *("venue", "location", "contact", "poll", "dice", "game", "story", "paid_media", "checklist"),
    *("giveaway", "invoice"),
)
HEIC_TYPES = ("image/heic", "image/heif")
"""Pictures of iPhones. The decoder starts threads, so no confined process can read them."""
_HEIC_NAMES = (".heic", ".heif")
_GENERAL_TOPIC = 1  # Telegram's id for the General topic of a forum, which no call may name
_AFTER_MENTION = ",:;"
_MAX_FILE_NAME_CHARS = 120


@dataclass(frozen=True, slots=True)
class Content:
    """What a message says and brings.

    `text` is without the command, and without a mention of us at the beginning. `command` and
    `command_to` are in lower case, without "/" and "@". `other` names content that came with a
    caption, or that no text says anything of. All of them are "" if there is none.
    """

    text: str
    command: str = ""
    command_to: str = ""
    mentions_us: bool = False
    media: MediaKind | None = None
    file: SentFile | None = None  # of the media
    other: str = ""


def read_content(message: telegram.Message, me: BotIdentity) -> Content:
    """Return the content of a message. If it is only a mention of us, that is its text.

    Only the entities that Telegram marked count, so an address in a code block mentions nobody.
    """
    text = well_formed(message.text or message.caption or spelled(message))
    us = f"@{me.username.lower()}"
    said, command, command_to = text.strip(), "", ""
    # Rich messages have no entities.
    mentions_us = RICH_MESSAGE in message.api_kwargs and us in said.lower()
    for entity in message.entities or message.caption_entities:
        start, end = entity.offset, entity.offset + entity.length
        # A command that somebody else wrote is no request of the sender.
        if entity.type == entity.BOT_COMMAND and start == 0 and is_first_party(message):
            command, _, command_to = utf16_slice(text, 1, end).lower().partition("@")
            said = utf16_slice(text, end).strip()
            break
        by_id = entity.type == entity.TEXT_MENTION and entity.user and entity.user.id == me.id
        by_name = entity.type == entity.MENTION and utf16_slice(text, start, end).lower() == us
        mentions_us = bool(mentions_us or by_id or by_name)
        if start == 0 and (by_id or by_name):
            said = utf16_slice(text, end).lstrip().lstrip(_AFTER_MENTION).strip() or said
    media, file = read_media(message)
    if file and said.lower() == us:
        said = ""  # the mention only says that the file is for us
    other = ""
    if message.caption or not (said or command or media == "document"):
        other = unsupported_kind(message) or ("photo" if media == "photo" else "")
    return Content(said, command, command_to, mentions_us, media, file, other)


def is_first_party(message: telegram.Message) -> bool:
    """Return whether the sender wrote it: not forwarded, and not sent through another bot."""
    return message.forward_origin is None and message.via_bot is None


def read_media(message: telegram.Message) -> tuple[MediaKind | None, SentFile | None]:
    """Return the file of a message and how it is read, None for a message without one.

    A sound and a round video may hold words. A picture sent as a file, and a sticker that does not
    move, count as photos. An animation and a video only look like documents.
    """
    if (document := message.document) and not unsupported_kind(message):
        type_, nbytes = document.mime_type or "", document.file_size or 0
        if (document.file_name or "").lower().endswith(_HEIC_NAMES):  # its type may be anything
            type_ = HEIC_TYPES[0]
        if type_.startswith("image/"):
            return "photo", SentFile(document.file_id, "", type_, nbytes)
        name = clean_name(document.file_name or "", _MAX_FILE_NAME_CHARS) or "file"
        kind: MediaKind = "voice" if type_.startswith("audio/") else "document"
        return kind, SentFile(document.file_id, name, type_, nbytes)
    if sound := message.voice or message.audio or message.video_note:
        name = clean_name(getattr(sound, "file_name", "") or "", _MAX_FILE_NAME_CHARS)
        type_ = "video/mp4" if message.video_note else getattr(sound, "mime_type", "") or ""
        name = name or ("sound" if type_ else "sound.ogg") * bool(message.audio)
        length = sound.duration  # python-telegram-bot is about to change its type
        seconds = int(length.total_seconds() if isinstance(length, timedelta) else length)
        nbytes = sound.file_size or 0
        return "voice", SentFile(sound.file_id, name, type_.lower(), nbytes, seconds=seconds)
    if (image := message.sticker) and not (image.is_animated or image.is_video):
        return "photo", SentFile(image.file_id, STICKER_FILE, "image/webp", image.file_size or 0)
    if not message.photo:
        return None, None
    # The largest form up to 2 megapixels; the smallest one if all are larger.
    sizes = sorted(message.photo, key=lambda size: size.width * size.height)
    fitting = [size for size in sizes if size.width * size.height <= MAX_PIXELS]
    chosen = fitting[-1] if fitting else sizes[0]
    return "photo", SentFile(chosen.file_id, "photo.jpg", "image/jpeg", chosen.file_size or 0)


def unsupported_kind(message: telegram.Message | telegram.ExternalReplyInfo) -> str:
    """Return the name of content beside text and documents, "" for a service message."""
    if RICH_MESSAGE in message.api_kwargs:
        return RICH_MESSAGE
    type_ = (message.document and message.document.mime_type) or ""
    other = "video" if type_.startswith("video/") else ""
    return next((kind for kind in UNSUPPORTED_KINDS if getattr(message, kind, None)), other)


def replied_message(message: telegram.Message) -> telegram.Message | None:
    """Return the message that this one answers.

    Telegram shows every plain message in a topic as a reply to the notice that opened the topic.
    That is not an answer.
    """
    replied = message.reply_to_message
    return None if replied is None or replied.forum_topic_created else replied


def topic_id(message: telegram.Message) -> int:
    """Return the topic, 0 if none. A plain thread of replies has a thread id but is not a topic."""
    thread_id = message.message_thread_id or 0
    return thread_id if message.is_topic_message and thread_id != _GENERAL_TOPIC else 0


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


_NAMELESS = "somebody"
_MAX_CHARS = 4_096


def read_reply(message: telegram.Message, sender: Sender, me: BotIdentity) -> ReplyTarget | None:
    """Return what a message replies to, None if it is no reply.

    Only the part that the person marked themselves counts as a quote, because Telegram adds quotes
    of its own. Of a message in another chat the quote is all that we get.
    """
    replied, elsewhere = replied_message(message), message.external_reply
    known = well_formed(message.quote.text)[:_MAX_CHARS] if message.quote else ""
    quote = known if message.quote and message.quote.is_manual else ""
    if replied is None:
        if elsewhere is None:
            return None
        author, sent_at = read_origin(elsewhere.origin)
        return ReplyTarget(0, author, sent_at, known, quote, unsupported_kind(elsewhere))

    user, chat = replied.from_user, replied.sender_chat
    author, sent_at = read_origin(replied.forward_origin)
    if not author:
        name = (chat.title or chat.username) if chat else user.full_name if user else ""
        author, sent_at = clean_name(name or "") or _NAMELESS, int(replied.date.timestamp())
    author_id = chat.id if chat else user.id if user else 0
    is_written = is_first_party(replied)
    has_text = replied.text or replied.caption
    kind, file = read_media(replied)
    photo = file.file_id if file and kind == "photo" and file.mime_type not in HEIC_TYPES else ""
    named = f"{FILE_MARK} {file.name}" if file and kind == "document" else photo and PHOTO_MARK
    words = "\n".join(filter(None, (named, has_text or spelled(replied))))
    return ReplyTarget(
        message_id=replied.message_id,
        author=author,
        author_id=author_id if is_written else 0,
        is_ours=is_written and author_id == me.id,
        is_own=is_written and author_id == sender.id,
        sent_at=sent_at,
        text=well_formed(words)[:_MAX_CHARS].strip(),
        unseen="" if words and not (has_text or photo) else unsupported_kind(replied),
        quote=quote,
        photo=photo,
    )


def read_origin(origin: telegram.MessageOrigin | None) -> tuple[str, int]:
    """Return who wrote a forwarded message and when (Unix seconds); "" and 0 if there is none."""
    match origin:
        case None:
            return "", 0
        case telegram.MessageOriginUser(sender_user=user):
            name, by = user.full_name or user.username, None
        case telegram.MessageOriginHiddenUser(sender_user_name=name):
            by = None
        case telegram.MessageOriginChat(sender_chat=chat, author_signature=by):
            name = chat.title or chat.username
        case telegram.MessageOriginChannel(chat=chat, author_signature=by):
            name = chat.title or chat.username
        case _:
            name = by = None
    signed = f"{name} ({by})" if name and by else name or by or ""
    return clean_name(signed) or _NAMELESS, int(origin.date.timestamp())


def spelled(message: telegram.Message) -> str:
    """Return the words for the content of a message, "" if we have none for it."""
    words = ""
    if RICH_MESSAGE in message.api_kwargs:
        words = plain_text(message.api_kwargs[RICH_MESSAGE])
    elif message.sticker:
        words = message.sticker.emoji or ""
    elif message.venue:  # before the location, which a venue also sets
        venue = message.venue
        words = f"📍 {venue.title}, {venue.address} ({_place(venue.location)})"
    elif message.location:
        words = f"📍 {_place(message.location)}"
    elif message.poll:
        options = (f"- {option.text}" for option in message.poll.options)
        words = "\n".join((f"📊 {message.poll.question}", *options))
    elif message.dice:
        words = f"{message.dice.emoji} {message.dice.value}"
    return words


def _place(location: telegram.Location) -> str:
    accuracy = location.horizontal_accuracy
    around = f" (±{accuracy:.0f} m)" if accuracy else ""
    return f"{location.latitude:.4f}, {location.longitude:.4f}{around}"


_MAX_RICH_CHARS = 32_768
_MAX_BLOCKS = 500
_MAX_DEPTH = 16
_MAX_NODES = 20_000  # pieces of formatted text; Telegram has no limit of its own for them

_LINES = ("summary", "text", "expression", "caption", "credit")
"""The fields of a block that hold formatted text, each read as a line."""
_INLINE = ("text", "expression", "alternative_text")
"""The fields of formatted text, the first one that is there counts."""


def plain_text(rich_message: object) -> str:
    """Return the text of a rich message, one line for each block; "" if it has none."""
    blocks = rich_message.get("blocks") if isinstance(rich_message, dict) else None
    lines = (line.strip() for line in _Walk().blocks(blocks, ""))
    return "\n".join(line for line in lines if line)[:_MAX_RICH_CHARS].rstrip()


class _Walk:
    """One reading; it ends when one of the limits is reached."""

    def __init__(self) -> None:
        self._chars = _MAX_RICH_CHARS
        self._blocks = _MAX_BLOCKS
        self._nodes = _MAX_NODES

    def blocks(self, nodes: object, label: str, depth: int = 0) -> Iterator[str]:
        """Yield the lines of blocks or list items; `label` stands before the first line."""
        if not isinstance(nodes, list) or depth >= _MAX_DEPTH:
            return
        for node in nodes:
            if self._blocks <= 0 or self._chars <= 0:
                return
            self._blocks -= 1
            for line in self._block(node, depth):
                yield f"{label} {line}" if label else line
                label = ""

    def _block(self, node: object, depth: int) -> Iterator[str]:
        if not isinstance(node, dict):
            return
        for name in _LINES:
            if name in node:
                yield self._inline(node[name])
        for row in _list(node.get("cells"))[: self._blocks]:
            self._blocks -= 1
            yield " | ".join(self._inline(cell) for cell in _list(row))
        for item in _list(node.get("items")):
            label = item.get("label") if isinstance(item, dict) else None
            yield from self.blocks([item], label if isinstance(label, str) else "-", depth + 1)
        yield from self.blocks(node.get("blocks"), "", depth + 1)

    def _inline(self, node: object, depth: int = 0) -> str:
        self._nodes -= 1
        if self._chars <= 0 or self._nodes <= 0 or depth > 2 * _MAX_DEPTH:
            return ""
        if isinstance(node, str):
            text = node[: self._chars]
            self._chars -= len(text)
            return text
        if isinstance(node, list):
            return "".join(self._inline(each, depth + 1) for each in node)
        if isinstance(node, dict):
            name = next((name for name in _INLINE if name in node), "")
            return self._inline(node.get(name), depth + 1)
        return ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
