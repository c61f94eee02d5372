"""Reads Telegram's updates: what is for us becomes one of our values, the rest is `Ignored`.

Pure: it stores nothing and calls nothing.

The Bot API gets new fields, and old ones become optional. A library that requires one more field
than Telegram sends refuses the whole message. We need few of them, so it is read once more without
those that cannot be read.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeGuard

import structlog
import telegram
from telegram.constants import ChatType, ReactionEmoji

from bot.reply.parts import well_formed
from bot.telegram.admission import OWN_BUTTON
from bot.telegram.bot_api import ALLOWED_UPDATES, BotIdentity
from bot.telegram.edits import read_edit
from bot.telegram.errors import UnreadableUpdate
from bot.telegram.message_content import (
    Content,
    is_first_party,
    is_present,
    read_content,
    read_notice,
    read_origin,
    read_reply,
    replied_message,
    topic_id,
)
from bot.telegram.updates import (
    ASK,
    NEW,
    RETRY,
    WITH_WORDS,
    AlbumPart,
    ButtonPress,
    Ignored,
    IncomingMessage,
    MessageKind,
    SentFile,
    StoppedDraft,
    Stranger,
    ThumbsDown,
    TopicNamed,
    Update,
    clean_name,
    read_person,
    read_sender,
)

log = structlog.get_logger(__name__)

_MAX_ID = 2**63
_MAX_ALBUM_DIGITS = 20
_NUMBERS = (
    *("chat_id", "topic_id", "message_id", "replied_to", "sent_at", "draft_id"),
    *("old_chat_id", "new_chat_id", "id", "nbytes", "seconds", "author_id"),
)
"""Numbers of what an update becomes, of its sender, its file and the message it replies to."""
_MAX_REACTIONS = 16  # a person has at most three reactions to a message
GROUPS = frozenset({ChatType.GROUP, ChatType.SUPERGROUP})
NONSENSE = (
    *(ArithmeticError, AttributeError, LookupError, OSError, RecursionError),
    *(TypeError, ValueError),
)
"""What PTB raises for an update that is not as the Bot API describes it."""

Serves = Callable[[int, int], bool]
"""Returns whether a sender (first) is served in a chat."""


@dataclass(frozen=True, slots=True, eq=False)
class UpdateReader:
    """Decides what an update means to this bot; `commands` are in lower case, without slash."""

    me: BotIdentity
    commands: frozenset[str]
    serves: Serves
    file_commands: frozenset[str] = frozenset()

    def read(self, raw: Mapping[str, object]) -> Update:
        """Return what the update means to us; raise `UnreadableUpdate` if it is malformed."""
        update_id = raw.get("update_id")
        if not _is_id(update_id):
            raise UnreadableUpdate(None)
        try:
            update = self._read(update_id, raw)
        except NONSENSE:
            try:
                update = self._read_what_can_be(update_id, raw)
            except NONSENSE:
                # The original error's text may quote a person.
                raise UnreadableUpdate(update_id) from None
            log.warning("update partly unreadable", look_at="a newer python-telegram-bot")
        message = update.message if isinstance(update, Stranger | AlbumPart) else update
        parts = message, *(getattr(message, part, None) for part in ("sender", "file", "reply"))
        if not all(_is_id(getattr(part, name, 0)) for part in parts for name in _NUMBERS):
            raise UnreadableUpdate(update_id)
        return update

    def _read(self, update_id: int, raw: Mapping[str, object]) -> Update:
        # `telegram.Update` would look for two dozen other kinds in each update.
        match raw:
            case {"message": dict(sent)} | {"edited_message": dict(sent)}:
                message = telegram.Message.de_json(sent)
                update = self._read_message(update_id, message)
                return update if "message" in raw else read_edit(message, update)
            case {"callback_query": dict(query)}:
                return self._read_press(update_id, telegram.CallbackQuery.de_json(query))
            case {"stopped_message_generation": dict(stopped)}:
                chat_id, topic = stopped["chat"]["id"], stopped.get("message_thread_id", 0)
                return StoppedDraft(update_id, chat_id, topic, stopped["draft_id"])
            case {"message_reaction": dict(reaction)}:
                return self._read_reaction(update_id, reaction)
            case {"my_chat_member": dict(membership)}:
                change = telegram.ChatMemberUpdated.de_json(membership)
                return self._read_membership(update_id, change)
        if any(map(raw.get, ALLOWED_UPDATES)):
            raise UnreadableUpdate(update_id)
        is_of_channel = "channel_post" in raw or "edited_channel_post" in raw
        return Ignored(update_id, "channel_post" if is_of_channel else "other")

    def _read_what_can_be(self, update_id: int, raw: Mapping[str, object]) -> Update:
        """Read a message or a press without the fields that the library refuses.

        If nothing else is left of a message, a person in a private chat hears that it cannot be
        read.
        """
        if isinstance(query := raw.get("callback_query"), dict):
            press = telegram.CallbackQuery.de_json(readable_press(query))
            return self._read_press(update_id, press)
        edited = "message" not in raw
        sent = raw["edited_message" if edited else "message"]
        if not isinstance(sent, dict):
            raise TypeError
        fields, is_own = readable_fields(sent)
        message = telegram.Message.de_json(fields)
        update = self._read_message(update_id, message)
        if isinstance(update, IncomingMessage) and not is_own:
            update = replace(update, is_first_party=False)
        if edited:
            return read_edit(message, update)
        if isinstance(update, Ignored) and update.reason == "service":
            if message.chat.type != ChatType.PRIVATE:
                raise ValueError
            asked = telegram.Message.de_json(fields | {"text": "?"})
            update = self._read_message(update_id, asked)
            unread = partial(replace, kind="unsupported", text="other")
            if isinstance(update, Stranger):
                return replace(update, message=unread(update.message))
            return unread(update) if isinstance(update, IncomingMessage) else update
        return update

    def _read_message(self, update_id: int, message: telegram.Message) -> Update:
        if notice := read_notice(update_id, message):
            is_topic, person = isinstance(notice, TopicNamed), message.chat.id
            is_stranger = is_topic and not self.serves(person, person)
            return Ignored(update_id, "stranger") if is_stranger else notice
        chat = message.chat
        # What people write to a channel in private would be one conversation of all of them. Our
        # answer to what only we may see of a group would be seen by everybody there.
        is_of_channel = chat.type == ChatType.CHANNEL or chat.is_direct_messages
        is_ephemeral = "ephemeral_message_id" in message.api_kwargs
        if is_of_channel or message.is_automatic_forward or is_ephemeral:
            return Ignored(update_id, "ephemeral" if is_ephemeral else "channel_post")
        sender = read_sender(message)
        if sender is None:
            return Ignored(update_id, "bot")

        content = read_content(message, self.me)
        reason = self._reason_to_ignore(message, content)
        album = message.media_group_id or ""
        if not album.isdecimal() or len(album) > _MAX_ALBUM_DIGITS:
            album = ""
        if reason and not (album and content.media == "photo" and reason == "unaddressed"):
            return Ignored(update_id, reason)

        is_served = self.serves(sender.id, chat.id)
        kind, text, command, file = self._read_kind(content)
        if command == "start" and is_served:
            text = ""  # a code in a link may let other people in, so it must not be stored
        replied = replied_message(message)
        if replied and (kind, command, text) == ("command", ASK, ""):  # it asks about that message
            kind, text, command = "text", "?", ""
        forwarded_from, forwarded_at = read_origin(message.forward_origin)
        incoming = IncomingMessage(
            update_id=update_id,
            chat_id=chat.id,
            topic_id=topic_id(message),
            is_group=chat.type in GROUPS,
            message_id=message.message_id,
            sent_at=int(message.date.timestamp()),
            sender=sender,
            kind=kind,
            text=text,
            command=command,
            file=file,
            is_first_party=is_first_party(message),
            replied_to=replied.message_id if replied else 0,
            replied_at=int(replied.date.timestamp()) if replied and kind == "command" else 0,
            reply=read_reply(message, sender, self.me) if kind in WITH_WORDS else None,
            forwarded_from=forwarded_from,
            forwarded_at=forwarded_at,
            unseen=content.other if kind in WITH_WORDS else "",
            album=album,
        )
        if is_served:
            return AlbumPart(update_id, incoming) if reason else incoming
        place = clean_name(chat.title or "")
        return Ignored(update_id, reason) if reason else Stranger(update_id, incoming, place)

    def _read_kind(self, content: Content) -> tuple[MessageKind, str, str, SentFile | None]:
        """Return kind, text, command and file.

        "/ask", "/new" and "/retry" with a text or under a file are ordinary messages. That of
        "/new" keeps its command, because a new session begins with it.
        """
        text, command, media = content.text, content.command, content.media
        if command and not (command in (ASK, NEW, RETRY) and (text or media)):
            document = content.file if media == "document" else None
            if command in self.file_commands and (text or document):
                pasted = SentFile("", f"/{command}", "", len(text.encode()), pasted=text)
                return "document", "", "", replace(document or pasted, read_as=command)
            return "command", text, command, None
        if content.other and not (text or media):
            return "unsupported", content.other, "", None
        return media or "text", text, command if command == NEW else "", content.file

    def _read_membership(self, update_id: int, change: telegram.ChatMemberUpdated) -> Update:
        is_new = is_present(change.new_chat_member) and not is_present(change.old_chat_member)
        if not is_new or change.chat.type not in GROUPS or change.from_user.is_bot:
            return Ignored(update_id, "membership")
        start = IncomingMessage(
            update_id=update_id,
            chat_id=change.chat.id,
            topic_id=0,
            is_group=True,
            message_id=0,
            sent_at=int(change.date.timestamp()),
            sender=read_person(change.from_user),
            kind="command",
            text="",
            command="start",
        )
        if self.serves(start.sender.id, start.chat_id):
            return start
        return Stranger(update_id, start, clean_name(change.chat.title or ""))

    def _reason_to_ignore(self, message: telegram.Message, content: Content) -> str:
        is_group = message.chat.type in GROUPS
        if content.command_to:
            return "" if content.command_to == self.me.username.lower() else "other_bot"
        if content.command:
            # In a group a bare command may belong to any bot, even in a reply to us.
            is_ours = content.command == ASK or content.command in self.commands
            return "unknown_command" if is_group and not is_ours else ""
        if not (content.text or content.file or content.other):
            return "service"
        replied = replied_message(message)
        answers_us = replied and replied.from_user and replied.from_user.id == self.me.id
        return "" if not is_group or content.mentions_us or answers_us else "unaddressed"

    def _read_press(self, update_id: int, query: telegram.CallbackQuery) -> Update:
        message = query.message
        if message is None or not query.data or query.from_user.is_bot:
            return Ignored(update_id, "other")
        is_own = message.chat.type == ChatType.PRIVATE and OWN_BUTTON.match(query.data)
        if not is_own and not self.serves(query.from_user.id, message.chat.id):
            return Ignored(update_id, "stranger")
        return ButtonPress(
            update_id=update_id,
            callback_id=query.id,
            chat_id=message.chat.id,
            # Telegram no longer gives the topic of a message that is too old to be shown.
            topic_id=topic_id(message) if isinstance(message, telegram.Message) else 0,
            is_group=message.chat.type in GROUPS,
            message_id=message.message_id,
            sender=read_person(query.from_user),
            callback_data=well_formed(query.data),
            asked_at=message.date.timestamp(),
        )

    def _read_reaction(self, update_id: int, raw: Mapping[str, Any]) -> ThumbsDown | Ignored:
        """Return a 👎 that a person has just set; those in the name of a chat have no person."""
        is_new = _dislikes(raw["new_reaction"]) and not _dislikes(raw["old_reaction"])
        user = telegram.User.de_json(raw["user"]) if is_new and raw.get("user") else None
        if user is None or user.is_bot:
            return Ignored(update_id, "reaction")
        chat = raw["chat"]
        if not self.serves(user.id, chat["id"]):
            return Ignored(update_id, "stranger")
        is_group = chat["type"] != ChatType.PRIVATE
        sender = read_person(user)
        return ThumbsDown(update_id, chat["id"], is_group, raw["message_id"], sender, raw["date"])


def _is_id(value: object) -> TypeGuard[int]:
    """Return whether Telegram could have given such an id: its ids fit into 64 bits."""
    return type(value) is int and -_MAX_ID <= value < _MAX_ID


def _dislikes(reactions: Sequence[Mapping[str, object]]) -> bool:
    emoji = (each.get("emoji") for each in reactions[:_MAX_REACTIONS])
    return ReactionEmoji.THUMBS_DOWN in emoji


_CHAT = ("id", "type", "title", "username", "first_name", "is_forum", "is_direct_messages")
_USER = ("id", "is_bot", "first_name", "last_name", "username", "language_code")
_ENTITY = ("type", "offset", "length", "url", "language")
_ORIGINS = {"forward_origin", "via_bot"}  # fields that say that somebody else wrote the words
_MAX_FIELDS = 100
_UNDER_PRESS = ("message_id", "date", "message_thread_id", "is_topic_message")
"""What a press needs of the message with the button, beside its chat."""


def readable_fields(sent: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the fields of a message that can be read, and whether its sender wrote the words.

    Raise one of `NONSENSE` if nobody can be answered, because chat, sender or date are missing.
    """
    core = {
        "message_id": sent["message_id"],
        "date": sent["date"],
        "chat": _only(sent["chat"], _CHAT),
        "from": _person(sent["from"]),
    }
    telegram.Message.de_json(dict(core))
    kept = dict(core)
    further = [(name, value) for name, value in sent.items() if name not in core]
    for name, value in further[:_MAX_FIELDS]:
        plain = value
        if name in ("entities", "caption_entities") and isinstance(value, list):
            plain = [_only(each, _ENTITY) for each in value if isinstance(each, Mapping)]
        with suppress(*NONSENSE):
            telegram.Message.de_json({**core, name: plain})
            kept[name] = plain
    # A chat of a sender that cannot be read is not the sender that it hides.
    is_own = not (_ORIGINS | {"sender_chat"}) & (sent.keys() - kept.keys())
    return kept, is_own


def readable_press(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a button press that say who pressed which button, and where."""
    kept = {name: sent.get(name) for name in ("id", "data")}
    kept |= {"chat_instance": "", "from": _person(sent["from"])}
    if under := sent.get("message"):
        kept["message"] = {**_only(under, _UNDER_PRESS), "chat": _only(under["chat"], _CHAT)}
    return kept


def _person(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"is_bot": False, "first_name": "", **_only(given, _USER)}


def _only(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}
