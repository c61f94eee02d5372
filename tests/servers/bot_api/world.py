"""All people, chats, files, menus and pressed buttons of the local Telegram.

A person sees the menu of the narrowest scope that has one, and within a scope the menu in their
language before the one without a language.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from tests.servers.bot_api.account import Account
from tests.servers.bot_api.chats import Chat, ChatKind, Member, Message, Status
from tests.servers.bot_api.errors import ApiError, BadRequestError
from tests.servers.bot_api.shapes import membership_shape, message_shape
from tests.servers.bot_api.updates import Updates
from tests.servers.bot_api.values import BotCommand, StoredFile, Upload, User

_SUPERGROUP_IDS = 1_000_000_000_000


@dataclass(slots=True, eq=False)
class Press:
    """A pressed button; `answer` is the text that the bot then showed, None until it answers."""

    id: str
    by: User
    message: Message
    callback_data: str
    answer: str | None = None


class World:
    """What the methods read and change; `reads_all` is false if getMe reports privacy mode.

    `menus` are by scope and language; "" is any other language.
    """

    def __init__(self, account: Account, updates: Updates, *, reads_all: bool) -> None:
        self.account = account
        self.updates = updates
        self.reads_all = reads_all
        self.menus: dict[tuple[str, str], tuple[BotCommand, ...]] = {}
        self.users: dict[int, User] = {account.bot.id: account.bot}
        self.chats: dict[int, Chat] = {}
        self.files: dict[str, StoredFile] = {}
        self.presses: dict[str, Press] = {}
        self._ids = account.new_ids()

    def chat(self, chat_id: str) -> Chat:
        """Return the chat that a call names; raise `BadRequestError` if there is none."""
        if not chat_id:
            raise BadRequestError("chat_id is empty")
        try:
            return self.chats[int(chat_id)]
        except (ValueError, KeyError):  # channels by @name are not known here
            raise BadRequestError("chat not found") from None

    def open_chat(self, chat_id: str) -> Chat:
        """Return a chat that the bot may write to; raise `ApiError` if it may not."""
        chat = self.chat(chat_id)
        if chat.closed:
            raise chat.closed()
        return chat

    def private_chat(self, user: User) -> Chat:
        """Return the chat of a person with the bot; the bot must wait to be written to."""
        if user.id not in self.chats:
            members = [Member(user, "member"), Member(self.account.bot, "member")]
            chat = self.chats[user.id] = Chat(self.account, user.id, "private", "", members)
            why = "Forbidden: bot can't initiate conversation with a user"
            chat.closed = partial(ApiError, 403, why)
        return self.chats[user.id]

    def new_group(self, kind: ChatKind, title: str, members: Iterable[Member]) -> Chat:
        number = next(self._ids)
        chat_id = -number if kind == "group" else -(_SUPERGROUP_IDS + number)
        chat = self.chats[chat_id] = Chat(self.account, chat_id, kind, title, members)
        return chat

    def store(self, upload: Upload) -> StoredFile:
        file_id = f"file-{next(self._ids)}"
        file = StoredFile(file_id, upload.content, upload.name, upload.mime_type)
        self.files[file_id] = file
        return file

    def new_press(self, by: User, message: Message, callback_data: str) -> Press:
        press = Press(str(next(self._ids)), by, message, callback_data)
        self.presses[press.id] = press
        return press

    def menu(self, person: User, chat: Chat) -> tuple[BotCommand, ...]:
        kind = "all_private_chats" if chat.kind == "private" else "all_group_chats"
        for scope in (str(chat.id), kind, "default"):
            for language in (person.language_code[:2], ""):
                if menu := self.menus.get((scope, language)):
                    return menu
        return ()

    async def publish(self, message: Message, *, is_edited: bool = False) -> None:
        """Send the bot an update about a person's message, if the bot may see it."""
        member = message.chat.members.get(self.account.bot.id)
        if member is None or member.status in ("left", "kicked"):
            await self.account.changes.tell()
            return
        kind = "edited_message" if is_edited else "message"
        await self.updates.add(kind, str(message.chat.id), message_shape(message))

    async def move_bot(self, chat: Chat, status: Status, *, by: User) -> None:
        bot = self.account.bot
        old, new = chat.members[bot.id], Member(bot, status)
        chat.members[bot.id] = new
        body = membership_shape(self.account, chat, by, new, old)
        await self.updates.add("my_chat_member", f"members {chat.id}", body)
