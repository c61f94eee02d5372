"""What people of the tests do in addition to writing: edit, delete, block the bot, migrate groups.

Each act changes a chat as people see it and becomes an update for the bot. An act that is
impossible in Telegram raises `ValueError`, because the test is wrong.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from bot.playground.bot_api import people
from bot.playground.bot_api.api_errors import BadRequestError
from bot.playground.bot_api.chats import ChatMessage as Message
from bot.playground.bot_api.chats import LocalChat as Chat
from bot.playground.bot_api.chats import Member, Status
from bot.playground.bot_api.people import find_entities
from bot.playground.bot_api.values import Media, MediaKind, Topic, User
from bot.playground.bot_api.values import MessageEntity as Entity
from bot.playground.bot_api.values import UploadedFile as Upload
from tests.servers.bot_api import chats
from tests.servers.bot_api.errors import ForbiddenError
from tests.servers.bot_api.shapes import membership_shape
from tests.servers.bot_api.world import World

# Telegram's own accounts, which are the senders of messages that a chat writes.
ANONYMOUS_ADMIN = User(1087968824, "Group", username="GroupAnonymousBot", is_bot=True)
CHANNEL_POSTER = User(136817688, "Channel", username="Channel_Bot", is_bot=True)

_SAMPLES = {
    "photo": Upload(b"a photo"),
    "voice": Upload(b"a voice message", mime_type="audio/ogg"),
    "sticker": Upload(b"a sticker"),
    "document": Upload(b"a document", "notes.txt", "text/plain"),
}


class Person(people.LocalPerson):
    """A person with an account; another bot acts like a person."""

    _world: World

    async def say(
        self,
        chat: Chat,
        text: str,
        *,
        reply_to: Message | None = None,
        topic: Topic | None = None,
        entities: Sequence[Entity] | None = None,
        speaking_as: Chat | None = None,
    ) -> Message:
        """Send a text; mentions and commands in it are found unless `entities` are given.

        `speaking_as` the group itself is an anonymous admin, as another chat that channel. In a
        channel every message is the channel's.
        """
        found = find_entities(text) if entities is None else tuple(entities)
        message = self._spoken(chat, reply_to, topic, speaking_as)
        return await self._send(replace(message, text=text, entities=found))

    async def send(
        self,
        chat: Chat,
        kind: MediaKind,
        file: Upload | None = None,
        *,
        caption: str = "",
        reply_to: Message | None = None,
        topic: Topic | None = None,
    ) -> Message:
        """Send a photo, voice message, sticker or document; without `file` a sample."""
        message = self._spoken(chat, reply_to, topic, None)
        media = Media(kind, self._world.store(file or _SAMPLES[kind]))
        return await self._send_media(message, media, caption)

    async def edit(self, message: Message, text: str) -> Message:
        """Change the text of a message; return it as it is now."""
        edited = replace(
            self._seen(message),
            text=text,
            entities=find_entities(text),
            edited_at=self._world.account.now(),
        )
        message.chat.change(edited)
        await self._world.publish(edited, is_edited=True)
        return edited

    async def delete(self, message: Message) -> None:
        """Delete a message for everybody; bots get no update."""
        message.chat.remove(self._seen(message))
        await self._world.account.changes.tell()

    async def block(self) -> None:
        """Block the bot."""
        chat = self._world.private_chat(self.user)
        chat.closed = partial(ForbiddenError, "bot was blocked by the user")
        await self._move_bot(chat, "kicked")

    async def unblock(self) -> None:
        """Let the bot write again."""
        chat = self._world.private_chat(self.user)
        chat.closed = None
        await self._move_bot(chat, "member")

    async def kick_bot(self, chat: chats.Chat) -> None:
        """Remove the bot from a group."""
        chat.closed = partial(ForbiddenError, f"bot was kicked from the {chat.kind} chat")
        await self._move_bot(chat, "kicked")

    async def take_bot_in(self, chat: chats.Chat) -> None:
        """Add the bot to a group again after it was removed."""
        chat.closed = None
        await self._move_bot(chat, "member")

    async def migrate(self, chat: chats.Chat) -> chats.Chat:
        """Turn a basic group into a supergroup; return that. The old chat is closed."""
        if chat.kind != "group":
            raise ValueError(f"{chat} is no basic group")
        supergroup = self._world.new_group("supergroup", chat.title, chat.members.values())
        left = chats.Message(chat, self.user, service={"migrate_to_chat_id": supergroup.id})
        came = chats.Message(
            supergroup,
            ANONYMOUS_ADMIN,
            sender_chat=supergroup,
            service={"migrate_from_chat_id": chat.id},
        )
        why = "group chat was upgraded to a supergroup chat"
        chat.closed = partial(BadRequestError, why, migrate_to_chat_id=supergroup.id)
        await self._world.publish(chat.add(left))
        await self._world.publish(supergroup.add(came))
        return supergroup

    def _message(self, chat: Chat, reply_to: Message | None, topic: Topic | None) -> Message:
        return self._spoken(chat, reply_to, topic, None)

    def _spoken(
        self, chat: Chat, reply_to: Message | None, topic: Topic | None, speaking_as: Chat | None
    ) -> chats.Message:
        if self.id not in chat.members:
            raise ValueError(f"{self.user} is not in {chat}")
        topic_id = topic.id if topic else reply_to.topic_id if reply_to else 0
        message = chats.Message(chat, self.user, topic_id=topic_id, reply_to=reply_to)
        if chat.kind == "channel":
            return replace(message, sender=None, sender_chat=chat)
        if speaking_as is None:
            return message
        sender = ANONYMOUS_ADMIN if speaking_as is chat else CHANNEL_POSTER
        return replace(message, sender=sender, sender_chat=speaking_as)

    async def _send(self, message: Message) -> Message:
        chat = chats.tested(message.chat)
        if chat.kind == "private":
            if chat.members[self._world.account.bot.id].status == "kicked":
                await self.unblock()  # Telegram requires it before a person can write again
            chat.closed = None
        return await super()._send(message)

    def _seen(self, message: Message) -> Message:
        now = message.chat.message(message.id)
        if now is None:
            raise ValueError(f"{message} is deleted")
        return now

    async def _move_bot(self, chat: Chat, status: Status) -> None:
        bot = self._world.account.bot
        old, new = chat.members[bot.id], Member(bot, status)
        chat.members[bot.id] = new
        body = membership_shape(self._world.account, chat, self.user, new, old)
        await self._world.updates.add("my_chat_member", f"members {chat.id}", body)
