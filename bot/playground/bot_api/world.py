"""All people, chats, files and pressed buttons of the local Telegram.

A person sees the menu of the narrowest scope that has one, and within a scope the menu in their
language before the one without a language.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bot.playground.bot_api.account import Account
from bot.playground.bot_api.chats import ChatKind, ChatMessage, LocalChat, Member
from bot.playground.bot_api.shapes import message_shape
from bot.playground.bot_api.update_queue import UpdateQueue
from bot.playground.bot_api.values import (
    BadRequestError,
    MenuCommand,
    StoredFile,
    UploadedFile,
    User,
)

_SUPERGROUP_IDS = 1_000_000_000_000


@dataclass(slots=True, eq=False)
class Press:
    """A pressed button; `answer` is the text that the bot then showed, None until it answers."""

    id: str
    by: User
    message: ChatMessage
    callback_data: str
    answer: str | None = None
    is_alert: bool = False


class World:
    """What the methods read and change."""

    def __init__(self, account: Account, updates: UpdateQueue) -> None:
        self.account = account
        self.updates = updates
        self.profile = Profile()
        self.users: dict[int, User] = {account.bot.id: account.bot}
        self.chats: dict[int, LocalChat] = {}
        self.files: dict[str, StoredFile] = {}
        self.presses: dict[str, Press] = {}
        self._ids = account.new_ids()

    def chat(self, chat_id: str) -> LocalChat:
        """Return the chat that a call names; raise `BadRequestError` if there is none."""
        try:
            return self.chats[int(chat_id)]
        except (ValueError, KeyError):  # channels by @name are not known here
            raise BadRequestError("chat not found") from None

    def open_chat(self, chat_id: str) -> LocalChat:
        """Return a chat that the bot may write to; raise `ApiError` if it may not."""
        return self.chat(chat_id)

    def private_chat(self, user: User) -> LocalChat:
        """Return the chat of a person with the bot."""
        if user.id not in self.chats:
            members = [Member(user, "member"), Member(self.account.bot, "member")]
            self.chats[user.id] = self.make_chat(user.id, "private", "", members)
        return self.chats[user.id]

    def new_group(
        self, kind: ChatKind, title: str, members: Iterable[Member], number: int = 0
    ) -> LocalChat:
        """Return a new group or channel; with a `number` it has the same id at every start."""
        number = number or next(self._ids)
        chat_id = -number if kind == "group" else -(_SUPERGROUP_IDS + number)
        chat = self.chats[chat_id] = self.make_chat(chat_id, kind, title, members)
        return chat

    def make_chat(
        self, chat_id: int, kind: ChatKind, title: str, members: Iterable[Member]
    ) -> LocalChat:
        """Return a chat that is not in this world yet."""
        return LocalChat(self.account, chat_id, kind, title, members)

    def store(self, upload: UploadedFile) -> StoredFile:
        """Keep a file and return it."""
        file_id = f"file-{next(self._ids)}"
        file = StoredFile(file_id, upload.content, upload.name, upload.mime_type)
        self.files[file_id] = file
        return file

    def new_press(self, by: User, message: ChatMessage, callback_data: str) -> Press:
        """Return a press of a button, which waits for its answer."""
        press = Press(str(next(self._ids)), by, message, callback_data)
        self.presses[press.id] = press
        return press

    async def publish(self, message: ChatMessage, *, is_edited: bool = False) -> None:
        """Tell the bot of a person's message."""
        kind = "edited_message" if is_edited else "message"
        await self.updates.add(kind, str(message.chat.id), message_shape(message))


@dataclass(frozen=True, slots=True)
class CommandScope:
    """Who sees a menu; an id that the type does not need is 0."""

    type: str = "default"
    chat_id: int = 0
    user_id: int = 0


class Profile:
    """The menus by (scope, language), the descriptions by language; "" is any other language."""

    def __init__(self) -> None:
        self.menus: dict[tuple[CommandScope, str], tuple[MenuCommand, ...]] = {}
        self.descriptions: dict[str, str] = {}
        self.short_descriptions: dict[str, str] = {}

    def menu(self, person: User, chat: LocalChat) -> tuple[MenuCommand, ...]:
        """Return the commands that `person` is offered in `chat`."""
        for scope in _scopes(person, chat):
            for language in (person.language_code[:2], ""):
                if menu := self.menus.get((scope, language)):
                    return menu
        return ()


def _scopes(person: User, chat: LocalChat) -> Iterator[CommandScope]:
    """Yield the scopes of a person in a chat, the narrowest first."""
    if chat.kind == "private":
        yield CommandScope("chat", chat.id)
        yield CommandScope("all_private_chats")
    else:
        member = chat.members.get(person.id)
        is_admin = member is not None and member.is_admin
        yield CommandScope("chat_member", chat.id, person.id)
        if is_admin:
            yield CommandScope("chat_administrators", chat.id)
        yield CommandScope("chat", chat.id)
        if is_admin:
            yield CommandScope("all_chat_administrators")
        yield CommandScope("all_group_chats")
    yield CommandScope()
