"""What people do: speak, send things, edit, delete, press buttons, block the bot.

Each act changes a chat as people see it and becomes an update for the bot. An act that is
impossible in Telegram raises `ValueError`: it is a mistake of whoever wrote the scene.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from bot.playground.bot_api.chats import Chat, Member, Message, Status
from bot.playground.bot_api.errors import BadRequestError, ForbiddenError
from bot.playground.bot_api.formatting import find_entities
from bot.playground.bot_api.shapes import (
    chat_shape,
    membership_shape,
    message_shape,
    user_shape,
)
from bot.playground.bot_api.values import (
    ANONYMOUS_ADMIN,
    CHANNEL_POSTER,
    Entity,
    Media,
    MediaKind,
    Topic,
    Upload,
    User,
)
from bot.playground.bot_api.world import Press, World

_SAMPLES = {
    "photo": Upload(b"a photo"),
    "voice": Upload(b"a voice message", mime_type="audio/ogg"),
    "sticker": Upload(b"a sticker"),
    "document": Upload(b"a document", "notes.txt", "text/plain"),
}


class Person:
    """Somebody with an account; another bot acts like a person."""

    def __init__(self, world: World, user: User) -> None:
        self.user = user
        self._world = world

    @property
    def id(self) -> int:
        """The id of the account."""
        return self.user.id

    def switch_language(self, language_code: str) -> None:
        """Let this person's Telegram speak another language, in every chat."""
        self.user = replace(self.user, language_code=language_code)
        self._world.users[self.id] = self.user
        for chat in self._world.chats.values():
            if self.id in chat.members:
                chat.members[self.id] = replace(chat.members[self.id], user=self.user)

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
        message = self._message(chat, reply_to, topic, speaking_as)
        return await self._send(replace(message, text=text, entities=found))

    async def send(
        self,
        chat: Chat,
        kind: MediaKind,
        *,
        caption: str = "",
        file: Upload | None = None,
        reply_to: Message | None = None,
        topic: Topic | None = None,
    ) -> Message:
        """Send a photo, voice message, sticker or document; without `file` a sample."""
        media = Media(kind, self._world.store(file or _SAMPLES[kind]))
        message = self._message(chat, reply_to, topic)
        entities = find_entities(caption)
        return await self._send(replace(message, media=media, text=caption, entities=entities))

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
        """Delete a message for everybody; bots are not told."""
        message.chat.remove(self._seen(message))
        await self._world.account.changes.tell()

    async def press(self, message: Message, button: str) -> Press:
        """Press a button of `message` by its text or callback data, as the message was given.

        A message changed or deleted meanwhile is pressed all the same, as people do.
        """
        buttons = [each for row in message.keyboard for each in row if each.callback_data]
        pressed = next((b for b in buttons if button in (b.text, b.callback_data)), None)
        if pressed is None:
            raise ValueError(f"no button {button!r} among {buttons}")
        press = self._world.new_press(self.user, message, pressed.callback_data)
        now = message.chat.message(message.id)
        gone = {"chat": chat_shape(message.chat), "message_id": message.id, "date": 0}
        body = {
            "id": press.id,
            "from": user_shape(self.user),
            "message": message_shape(now) if now else gone,
            "chat_instance": str(message.chat.id),
            "data": pressed.callback_data,
        }
        await self._world.updates.add("callback_query", f"callback {self.id}", body)
        return press

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

    async def kick_bot(self, chat: Chat) -> None:
        """Throw the bot out of a group."""
        chat.closed = partial(ForbiddenError, f"bot was kicked from the {chat.kind} chat")
        await self._move_bot(chat, "kicked")

    async def take_bot_in(self, chat: Chat) -> None:
        """Take the bot into a group again after it was thrown out."""
        chat.closed = None
        await self._move_bot(chat, "member")

    async def migrate(self, chat: Chat) -> Chat:
        """Turn a basic group into a supergroup; return that. The old chat is closed."""
        if chat.kind != "group":
            raise ValueError(f"{chat} is no basic group")
        supergroup = self._world.new_group("supergroup", chat.title, chat.members.values())
        left = Message(chat, self.user, service={"migrate_to_chat_id": supergroup.id})
        came = Message(
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

    def _message(
        self,
        chat: Chat,
        reply_to: Message | None,
        topic: Topic | None,
        speaking_as: Chat | None = None,
    ) -> Message:
        if self.id not in chat.members:
            raise ValueError(f"{self.user} is not in {chat}")
        topic_id = topic.id if topic else reply_to.topic_id if reply_to else 0
        message = Message(chat, self.user, topic_id=topic_id, reply_to=reply_to)
        if chat.kind == "channel":
            return replace(message, sender=None, sender_chat=chat)
        if speaking_as is None:
            return message
        sender = ANONYMOUS_ADMIN if speaking_as is chat else CHANNEL_POSTER
        return replace(message, sender=sender, sender_chat=speaking_as)

    async def _send(self, message: Message) -> Message:
        chat = message.chat
        if chat.kind == "private":
            if chat.members[self._world.account.bot.id].status == "kicked":
                await self.unblock()  # Telegram asks for it before it lets one write
            chat.closed = None
        sent = chat.add(message)
        await self._world.publish(sent)
        return sent

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
