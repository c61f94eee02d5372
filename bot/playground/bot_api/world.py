"""Everybody and everything in this little Telegram: people, chats, files, pressed buttons.

It turns what happens into updates for the bot and says which chats the bot may write to.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from bot.playground.bot_api.account import Account
from bot.playground.bot_api.chats import Chat, ChatKind, Member, Message
from bot.playground.bot_api.errors import BadRequestError, ForbiddenError
from bot.playground.bot_api.formatting import entity_text
from bot.playground.bot_api.profile import Profile
from bot.playground.bot_api.shapes import message_shape
from bot.playground.bot_api.updates import Updates
from bot.playground.bot_api.values import StoredFile, Upload, User

_SUPERGROUP_IDS = 1_000_000_000_000


@dataclass(slots=True, eq=False)
class Press:
    """A pressed button; `answer` is the text that the bot then showed, None until it answers."""

    id: str
    by: User
    message: Message
    callback_data: str
    answer: str | None = None
    is_alert: bool = False


class World:
    """What the methods read and change; `reads_all` is a bot without privacy mode."""

    def __init__(self, account: Account, updates: Updates, *, reads_all: bool) -> None:
        self.account = account
        self.updates = updates
        self.reads_all = reads_all
        self.profile = Profile()
        self.users: dict[int, User] = {account.bot.id: account.bot}
        self.chats: dict[int, Chat] = {}
        self.files: dict[str, StoredFile] = {}
        self.presses: dict[str, Press] = {}
        self._ids = account.new_ids()

    def chat(self, chat_id: str) -> Chat:
        """Return a chat by what a call names it; raise `BadRequestError` when there is none."""
        if not chat_id:
            raise BadRequestError("chat_id is empty")
        try:
            return self.chats[int(chat_id)]
        except (ValueError, KeyError):  # channels by @name are not known here
            raise BadRequestError("chat not found") from None

    def open_chat(self, chat_id: str) -> Chat:
        """Return a chat that the bot may write to; raise `ApiError` when it may not."""
        chat = self.chat(chat_id)
        if chat.closed:
            raise chat.closed()
        return chat

    def private_chat(self, user: User) -> Chat:
        """Return the chat of a person with the bot; the bot must wait to be written to."""
        if user.id not in self.chats:
            members = [Member(user, "member"), Member(self.account.bot, "member")]
            chat = self.chats[user.id] = Chat(self.account, user.id, "private", members=members)
            chat.closed = partial(ForbiddenError, "bot can't initiate conversation with a user")
        return self.chats[user.id]

    def new_group(
        self,
        kind: ChatKind,
        title: str,
        members: Iterable[Member],
        *,
        is_forum: bool = False,
        number: int = 0,
    ) -> Chat:
        """Return a new group or channel; `number` makes it the same chat at every start."""
        number = number or next(self._ids)
        chat_id = -number if kind == "group" else -(_SUPERGROUP_IDS + number)
        chat = Chat(self.account, chat_id, kind, title, members, is_forum=is_forum)
        self.chats[chat_id] = chat
        return chat

    def store(self, upload: Upload) -> StoredFile:
        """Return a file as it is kept."""
        file_id = f"file-{next(self._ids)}"
        file = StoredFile(file_id, upload.content, upload.name, upload.mime_type)
        self.files[file_id] = file
        return file

    def new_press(self, by: User, message: Message, callback_data: str) -> Press:
        """Return a press of a button, waiting for its answer."""
        press = Press(str(next(self._ids)), by, message, callback_data)
        self.presses[press.id] = press
        return press

    async def publish(self, message: Message, *, is_edited: bool = False) -> None:
        """Tell the bot of somebody else's message, as far as the bot may see it."""
        if not self._reaches_bot(message):
            await self.account.changes.tell()
            return
        kind = "channel_post" if message.chat.kind == "channel" else "message"
        kind = f"edited_{kind}" if is_edited else kind
        await self.updates.add(kind, str(message.chat.id), message_shape(message))

    def _reaches_bot(self, message: Message) -> bool:
        """Apply privacy mode: commands, replies to the bot and service messages pass."""
        bot = self.account.bot
        member = message.chat.members.get(bot.id)
        if member is None or member.status in ("left", "kicked"):
            return False
        if message.chat.kind in ("private", "channel") or self.reads_all or member.is_admin:
            return True
        if message.service or (message.reply_to and message.reply_to.sender == bot):
            return True
        commands = [
            entity_text(message.text, entity)
            for entity in message.entities
            if entity.type == "bot_command"
        ]
        return any(command.partition("@")[2] in ("", bot.username) for command in commands)
