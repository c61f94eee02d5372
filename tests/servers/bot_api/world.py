"""The tests' world: privacy mode, closed chats, channels, edited messages."""

from collections.abc import Iterable
from functools import partial

from bot.playground.bot_api import world
from bot.playground.bot_api.account import Account
from bot.playground.bot_api.chats import ChatKind, Member, Status
from bot.playground.bot_api.chats import ChatMessage as Message
from bot.playground.bot_api.shapes import message_shape
from bot.playground.bot_api.values import BadRequestError, User
from tests.servers.bot_api import chats
from tests.servers.bot_api.chats import Chat, tested
from tests.servers.bot_api.errors import ForbiddenError
from tests.servers.bot_api.formatting import entity_text
from tests.servers.bot_api.shapes import membership_shape
from tests.servers.bot_api.updates import Updates


class World(world.World):
    """What the methods read and change; `reads_all` is a bot without privacy mode.

    With `private_topics` people open topics in their private chats.
    """

    def __init__(
        self, account: Account, updates: Updates, *, reads_all: bool, private_topics: bool
    ) -> None:
        super().__init__(account, updates)
        self.queue = updates
        self.reads_all = reads_all
        self.private_topics = private_topics

    def chat(self, chat_id: str) -> Chat:
        """Return the chat that a call names; raise `BadRequestError` if there is none."""
        if not chat_id:
            raise BadRequestError("chat_id is empty")
        return tested(super().chat(chat_id))

    def open_chat(self, chat_id: str) -> Chat:
        """Return a chat that the bot may write to; raise `ApiError` if it may not."""
        chat = self.chat(chat_id)
        if chat.closed:
            raise chat.closed()
        return chat

    def private_chat(self, user: User) -> Chat:
        """Return the chat of a person with the bot; the bot must wait to be written to."""
        is_new = user.id not in self.chats
        chat = tested(super().private_chat(user))
        if is_new:
            chat.has_private_topics = self.private_topics
            chat.closed = partial(ForbiddenError, "bot can't initiate conversation with a user")
        return chat

    def new_group(
        self, kind: ChatKind, title: str, members: Iterable[Member], number: int = 0
    ) -> Chat:
        """Return a new group or channel."""
        return tested(super().new_group(kind, title, members, number))

    def make_chat(
        self, chat_id: int, kind: ChatKind, title: str, members: Iterable[Member]
    ) -> Chat:
        """Return a chat that is not in this world yet."""
        return Chat(self.account, chat_id, kind, title, members)

    async def publish(self, message: Message, *, is_edited: bool = False) -> None:
        """Send the bot an update about a person's message, if the bot may see it."""
        if not self._reaches_bot(message):
            await self.account.changes.tell()
            return
        kind = "channel_post" if message.chat.kind == "channel" else "message"
        kind = f"edited_{kind}" if is_edited else kind
        await self.updates.add(kind, str(message.chat.id), message_shape(message))

    async def move_bot(self, chat: Chat, status: Status, *, by: User) -> None:
        """Change the bot's standing in a chat, and tell it."""
        bot = self.account.bot
        old, new = chat.members[bot.id], Member(bot, status)
        chat.members[bot.id] = new
        body = membership_shape(self.account, chat, by, new, old)
        await self.updates.add("my_chat_member", f"members {chat.id}", body)

    def _reaches_bot(self, message: Message) -> bool:
        """Apply privacy mode: commands, replies to the bot and service messages pass."""
        bot = self.account.bot
        member = message.chat.members.get(bot.id)
        if member is None or member.status in ("left", "kicked"):
            return False
        if message.chat.kind in ("private", "channel") or self.reads_all or member.is_admin:
            return True
        is_service = isinstance(message, chats.Message) and message.service
        if is_service or (message.reply_to and message.reply_to.sender == bot):
            return True
        commands = [
            entity_text(message.text, entity)
            for entity in message.entities
            if entity.type == "bot_command"
        ]
        return any(command.partition("@")[2] in ("", bot.username) for command in commands)
