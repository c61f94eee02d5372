"""The JSON of chats, members, messages and files, field by field as the Bot API writes it.

Absent values are absent fields.
"""

from collections.abc import Iterable
from dataclasses import replace

from tests.servers.bot_api.account import Account
from tests.servers.bot_api.chats import Chat, Member, Message
from tests.servers.bot_api.values import Entity, Keyboard, Media, Quote, StoredFile, User, present

Shape = dict[str, object]
_PIXELS = 512


def user_shape(user: User) -> Shape:
    shape: Shape = {"id": user.id, "is_bot": user.is_bot, "first_name": user.first_name}
    return shape | present(
        last_name=user.last_name, username=user.username, language_code=user.language_code
    )


def chat_shape(chat: Chat) -> Shape:
    """Return a Chat; a private one has its person's names."""
    if chat.kind == "private":
        person = chat.members[chat.id].user
        names = present(last_name=person.last_name, username=person.username)
        return {"id": chat.id, "first_name": person.first_name, "type": "private"} | names
    shape: Shape = {"id": chat.id, "title": chat.title, "type": chat.kind}
    return shape | present(is_forum=chat.is_forum)


def member_shape(member: Member) -> Shape:
    shape: Shape = {"user": user_shape(member.user), "status": member.status}
    if member.status == "kicked":
        return shape | {"until_date": 0}
    if not member.is_admin:
        return shape
    shape["is_anonymous"] = False
    if member.status == "creator":
        return shape
    rights = """
        can_manage_chat can_change_info can_delete_messages can_invite_users can_restrict_members
        can_pin_messages can_manage_topics can_promote_members can_manage_video_chats
        can_post_stories can_edit_stories can_delete_stories can_manage_tags
    """
    return shape | {"can_be_edited": False} | dict.fromkeys(rights.split(), True)


def membership_shape(account: Account, chat: Chat, by: User, new: Member, old: Member) -> Shape:
    return {
        "chat": chat_shape(chat),
        "from": user_shape(by),
        "date": account.now(),
        "old_chat_member": member_shape(old),
        "new_chat_member": member_shape(new),
    }


def reaction_shape(
    account: Account, message: Message, by: User, old: Iterable[str], new: Iterable[str]
) -> Shape:
    return {
        "chat": chat_shape(message.chat),
        "message_id": message.id,
        "user": user_shape(by),
        "date": account.now(),
        "old_reaction": [{"type": "emoji", "emoji": each} for each in old],
        "new_reaction": [{"type": "emoji", "emoji": each} for each in new],
    }


def entity_shape(entity: Entity) -> Shape:
    shape: Shape = {"offset": entity.offset, "length": entity.length, "type": entity.type}
    return shape | present(
        url=entity.url,
        language=entity.language,
        unix_time=entity.unix_time,
        date_time_format=entity.date_time_format,
    )


def message_shape(message: Message, *, with_reply: bool = True) -> Shape:
    """Return a Message; the message that it replies to has no reply of its own."""
    shape: Shape = {"message_id": message.id, "from": user_shape(message.sender)}
    shape |= {"chat": chat_shape(message.chat), "date": message.sent_at}
    shape |= present(
        edit_date=message.edited_at,
        message_thread_id=message.thread_id,
        is_topic_message=bool(message.topic_id),
        media_group_id=message.album,
        sender_chat=message.sender_chat and chat_shape(message.sender_chat),
        quote=message.quote and _quote_shape(message.quote),
        external_reply=message.external_reply and _external_reply(message.external_reply),
    )
    replied = message.reply_to or _topic_start(message)
    if with_reply and replied:
        shape["reply_to_message"] = message_shape(replied, with_reply=False)
    shape |= _content_shape(message)
    if message.keyboard:
        shape["reply_markup"] = {"inline_keyboard": _keyboard_shape(message.keyboard)}
    return {**shape, **message.content, **message.service}


def file_shape(file: StoredFile) -> Shape:
    return _stored_shape(file) | {"file_path": file.path}


def _external_reply(message: Message) -> Shape:
    """Return the ExternalReplyInfo of a message in another chat or topic; it has no text."""
    sender = user_shape(message.sender)
    shape: Shape = {"origin": {"type": "user", "date": message.sent_at, "sender_user": sender}}
    if message.chat.kind in ("supergroup", "channel"):
        shape |= {"chat": chat_shape(message.chat), "message_id": message.id}
    if message.media:
        shape[message.media.kind] = _media_shape(message.media)
    return shape


def _quote_shape(quote: Quote) -> Shape:
    entities = [entity_shape(entity) for entity in quote.entities]
    shape: Shape = {"text": quote.text, "position": quote.position}
    return shape | present(entities=entities, is_manual=quote.is_manual)


def _topic_start(message: Message) -> Message | None:
    """Return what a message in a topic replies to if it replies to nothing else."""
    if message.topic_id in (0, message.id):
        return None
    return message.chat.message(message.topic_id)


def _content_shape(message: Message) -> Shape:
    text, entities = ("caption", "caption_entities") if message.media else ("text", "entities")
    shape = present(**{text: message.text})
    if message.entities:
        shape[entities] = [entity_shape(entity) for entity in message.entities]
    if message.media:
        shape[message.media.kind] = _media_shape(message.media)
    if message.media and message.media.kind == "animation":
        shape["document"] = _media_shape(replace(message.media, kind="document"))
    return shape


def _media_shape(media: Media) -> object:
    stored = _stored_shape(media.file)
    named = present(file_name=media.file.name, mime_type=media.file.mime_type)
    match media.kind:
        case "photo":
            return [stored | {"width": _PIXELS, "height": _PIXELS}]
        case "voice" | "audio":
            return stored | {"duration": 1} | named
        case "video" | "animation":
            return stored | {"width": _PIXELS, "height": _PIXELS, "duration": 1} | named
        case "video_note":
            return stored | {"length": _PIXELS, "duration": 1}
        case "sticker":
            looks = {"is_animated": False, "is_video": False, "emoji": "🙂", "type": "regular"}
            return stored | {"width": _PIXELS, "height": _PIXELS} | looks
        case "document":
            return stored | named


def _stored_shape(file: StoredFile) -> Shape:
    return {"file_id": file.id, "file_unique_id": f"u{file.id}", "file_size": len(file.content)}


def _keyboard_shape(keyboard: Keyboard) -> list[list[Shape]]:
    return [
        [
            present(text=button.text, callback_data=button.callback_data, url=button.url)
            for button in row
        ]
        for row in keyboard
    ]
