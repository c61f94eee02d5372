"""Reads Telegram's updates: what is for us becomes one of our values, the rest is `Ignored`.

Pure: it stores nothing and calls nothing.
"""

from collections.abc import Mapping
from typing import TypeGuard

import telegram
from telegram.constants import ChatType

from bot.reply.utf16 import well_formed
from bot.telegram.bot_account import BotIdentity
from bot.telegram.bot_api import ALLOWED_UPDATES
from bot.telegram.edits import read_edit
from bot.telegram.errors import UnreadableUpdate
from bot.telegram.message_content import (
    ASK,
    Content,
    MessageText,
    is_first_party,
    is_present,
    kind_of,
    read_content,
    read_notice,
    read_person,
    read_sender,
    replied_message,
    topic_id,
)
from bot.telegram.reactions import read_reaction
from bot.telegram.replies import read_origin, read_reply
from bot.telegram.updates import (
    ButtonPress,
    ChatMigration,
    Disliked,
    Ignored,
    IncomingMessage,
    Sender,
    SentFile,
    StoppedDraft,
    TopicNamed,
    Update,
)

_GROUPS = frozenset({ChatType.GROUP, ChatType.SUPERGROUP})
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
"""What PTB raises for an update that is not as the Bot API describes it."""


class UpdateReader:
    """Decides what an update means to this bot.

    `commands` are our commands in lower case, without slash. If `allowed_user_ids` is empty, the
    bot serves everybody.
    """

    def __init__(
        self, me: BotIdentity, commands: frozenset[str], allowed_user_ids: frozenset[int]
    ) -> None:
        self._me = me
        self._commands = commands | {ASK}
        self._allowed_user_ids = allowed_user_ids

    def read(self, raw: Mapping[str, object]) -> Update:
        """Return what the update means to us; raise `UnreadableUpdate` if it is malformed."""
        update_id = raw.get("update_id")
        if not _is_id(update_id):
            raise UnreadableUpdate(None)
        try:
            update = self._read(update_id, raw)
        except _NONSENSE:
            # The original error's text may quote a person.
            raise UnreadableUpdate(update_id) from None
        if not all(map(_is_id, _ids(update))):
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
                return StoppedDraft.of(update_id, stopped)
            case {"message_reaction": dict(reaction)}:
                disliked = read_reaction(update_id, reaction)
                is_stranger = disliked is not None and not self._serves(disliked.sender.id)
                reason = "stranger" if is_stranger else "reaction"
                return Ignored(update_id, reason) if is_stranger or not disliked else disliked
            case {"my_chat_member": dict(membership)}:
                change = telegram.ChatMemberUpdated.de_json(membership)
                return self._read_membership(update_id, change)
        if any(map(raw.get, ALLOWED_UPDATES)):
            raise UnreadableUpdate(update_id)
        is_of_channel = "channel_post" in raw or "edited_channel_post" in raw
        return Ignored(update_id, "channel_post" if is_of_channel else "other")

    def _read_message(self, update_id: int, message: telegram.Message) -> Update:
        if notice := read_notice(update_id, message):
            is_stranger = isinstance(notice, TopicNamed) and not self._serves(notice.chat_id)
            return Ignored(update_id, "stranger") if is_stranger else notice
        if message.chat.type == ChatType.CHANNEL or message.is_automatic_forward:
            return Ignored(update_id, "channel_post")
        sender = read_sender(message)
        if sender is None:
            return Ignored(update_id, "bot")

        content = read_content(message, self._me)
        reason = self._reason_to_ignore(message, content, sender)
        if reason:
            return Ignored(update_id, reason)

        kind, text, command = kind_of(content)
        file = content.file
        if command == "import" and (text or file):
            file = file or SentFile("", "/import", "", len(text.encode()), pasted=text)
            kind, text, command = "document", "", ""
        if not self._serves(sender.id):
            kind, text, command = "stranger", "", ""
        is_for_model = kind in ("text", "document")
        replied = replied_message(message)
        forwarded_from, forwarded_at = read_origin(message.forward_origin)
        return IncomingMessage(
            update_id=update_id,
            chat_id=message.chat.id,
            topic_id=topic_id(message),
            is_group=message.chat.type in _GROUPS,
            message_id=message.message_id,
            sent_at=int(message.date.timestamp()),
            sender=sender,
            kind=kind,
            text=text,
            command=command,
            file=file if kind == "document" else None,
            is_first_party=is_first_party(message),
            replied_to=replied.message_id if replied else 0,
            reply=read_reply(message, sender, self._me) if is_for_model else None,
            forwarded_from=forwarded_from,
            forwarded_at=forwarded_at,
            unseen=content.unseen if is_for_model else "",
        )

    def _reason_to_ignore(self, message: telegram.Message, content: Content, sender: Sender) -> str:
        """Return why a message is not for us, "" if it is."""
        is_group, said = message.chat.type in _GROUPS, content.said
        if said.command:
            reason = self._reason_to_ignore_command(said, is_group=is_group)
        elif not (said.text or content.file or content.unsupported):
            reason = "service"
        elif is_group and not said.mentions_us and not self._answers_us(message):
            reason = "unaddressed"
        else:
            reason = ""
        if not reason and is_group and not self._serves(sender.id):
            reason = "stranger"
        return reason

    def _reason_to_ignore_command(self, content: MessageText, *, is_group: bool) -> str:
        if content.command_to:
            return "" if content.command_to == self._me.username.lower() else "other_bot"
        # In a group a bare command may belong to any bot, even in a reply to us.
        return "unknown_command" if is_group and content.command not in self._commands else ""

    def _answers_us(self, message: telegram.Message) -> bool:
        replied = replied_message(message)
        author = replied.from_user if replied else None
        return author is not None and author.id == self._me.id

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
            # Telegram no longer gives the topic of a message that is too old to be shown.
            topic_id=topic_id(message) if isinstance(message, telegram.Message) else 0,
            is_group=message.chat.type in _GROUPS,
            message_id=message.message_id,
            sender=read_person(query.from_user),
            callback_data=well_formed(query.data),
            asked_at=message.date.timestamp(),
        )

    def _read_membership(self, update_id: int, change: telegram.ChatMemberUpdated) -> Update:
        """Read being added to a group as /start there; ignore other changes of our membership."""
        is_new = is_present(change.new_chat_member) and not is_present(change.old_chat_member)
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
            sender=read_person(change.from_user),
            kind="command",
            text="",
            command="start",
        )

    def _serves(self, sender_id: int) -> bool:
        return not self._allowed_user_ids or sender_id in self._allowed_user_ids


def _is_id(value: object) -> TypeGuard[int]:
    """Return whether Telegram could have given such an id: its ids fit into 64 bits."""
    return type(value) is int and -_MAX_ID <= value < _MAX_ID


def _ids(update: Update) -> tuple[object, ...]:
    """Return the numbers that the rest of the bot relies on."""
    numbers: tuple[object, ...] = ()
    match update:
        case IncomingMessage():
            numbers = (update.chat_id, update.topic_id, update.message_id, update.replied_to)
            numbers += (update.sender.id,)
        case ButtonPress():
            numbers = (update.chat_id, update.topic_id, update.message_id, update.sender.id)
        case Disliked():
            numbers = (update.chat_id, update.message_id, update.sender.id, update.sent_at)
        case StoppedDraft():
            numbers = (update.chat_id, update.topic_id, update.draft_id)
        case ChatMigration():
            numbers = (update.old_chat_id, update.new_chat_id)
        case TopicNamed():
            numbers = (update.chat_id, update.topic_id)
    return numbers
