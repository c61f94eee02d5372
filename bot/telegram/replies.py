"""Reads what a message replies to, where a forwarded message comes from, and its album.

Pure functions. Names and texts come from other people and are bounded here.
"""

import telegram

from bot.reply.utf16 import well_formed
from bot.telegram.bot_account import BotIdentity
from bot.telegram.descriptions import spelled
from bot.telegram.message_content import is_first_party, replied_message, unsupported_kind
from bot.telegram.senders import clean_name
from bot.telegram.updates import ReplyTarget, Sender

_NAMELESS = "somebody"
_MAX_CHARS = 4_096
_MAX_ALBUM_DIGITS = 20


def read_reply(message: telegram.Message, sender: Sender, me: BotIdentity) -> ReplyTarget | None:
    """Return what a message replies to, None if it is no reply.

    Only the part that the person marked themselves counts as a quote, because Telegram adds quotes
    of its own. Of a message in another chat the quote is all that we get.
    """
    marked = message.quote
    quote = well_formed(marked.text)[:_MAX_CHARS] if marked and marked.is_manual else ""
    replied = replied_message(message)
    if replied:
        return _target(replied, quote, sender, me)
    if message.external_reply is None:
        return None
    known = well_formed(marked.text)[:_MAX_CHARS] if marked else ""
    author, sent_at = read_origin(message.external_reply.origin)
    unseen = unsupported_kind(message.external_reply)
    return ReplyTarget(0, author, sent_at, known, quote, unseen)


def read_album(message: telegram.Message) -> str:
    """Return Telegram's id of the album that a message is part of, "" for none."""
    album = message.media_group_id or ""
    return album if album.isdecimal() and len(album) <= _MAX_ALBUM_DIGITS else ""


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


def _target(replied: telegram.Message, quote: str, sender: Sender, me: BotIdentity) -> ReplyTarget:
    user, chat = replied.from_user, replied.sender_chat
    author, sent_at = read_origin(replied.forward_origin)
    if not author:
        name = (chat.title or chat.username) if chat else user.full_name if user else ""
        author, sent_at = clean_name(name or "") or _NAMELESS, int(replied.date.timestamp())
    author_id = chat.id if chat else user.id if user else 0
    is_written = is_first_party(replied)
    has_text = replied.text or replied.caption
    words = has_text or spelled(replied)
    return ReplyTarget(
        message_id=replied.message_id,
        author=author,
        author_id=author_id if is_written else 0,
        is_ours=is_written and author_id == me.id,
        is_own=is_written and author_id == sender.id,
        sent_at=sent_at,
        text=well_formed(words)[:_MAX_CHARS].strip(),
        unseen="" if words and not has_text else unsupported_kind(replied),
        quote=quote,
    )
