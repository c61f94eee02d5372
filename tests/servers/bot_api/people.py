"""What people of the tests do in addition to writing: quote, delete, react, block, migrate.

Each act changes a chat as people see it and becomes an update for the bot. An act that is
impossible in Telegram raises `ValueError`, because the test is wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from bot.playground.bot_api import people
from bot.playground.bot_api.chats import ChatMessage as Message
from bot.playground.bot_api.chats import LocalChat as Chat
from bot.playground.bot_api.people import find_entities
from bot.playground.bot_api.shapes import origin_of
from bot.playground.bot_api.values import BadRequestError, Media, MediaKind, Topic, User
from bot.playground.bot_api.values import MessageEntity as Entity
from bot.playground.bot_api.values import UploadedFile as Upload
from tests.servers.bot_api import chats
from tests.servers.bot_api.contents import Quote, find_quote, location
from tests.servers.bot_api.errors import ForbiddenError
from tests.servers.bot_api.shapes import reaction_shape
from tests.servers.bot_api.world import World

# Telegram's own accounts, which are the senders of messages that a chat writes.
ANONYMOUS_ADMIN = User(1087968824, "Group", username="GroupAnonymousBot", is_bot=True)
CHANNEL_POSTER = User(136817688, "Channel", username="Channel_Bot", is_bot=True)

_SAMPLES = {
    "photo": Upload(b"a photo"),
    "voice": Upload(b"a voice message", mime_type="audio/ogg"),
    "sticker": Upload(b"a sticker"),
    "document": Upload(b"a document", "notes.txt", "text/plain"),
    "video": Upload(b"a video", mime_type="video/mp4"),
    "video_note": Upload(b"a round video", mime_type="video/mp4"),
    "audio": Upload(b"a song", "song.mp3", "audio/mpeg"),
    "animation": Upload(b"moving pictures", "cat.mp4", "video/mp4"),
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
        quote: str = "",
        is_manual: bool = True,
    ) -> Message:
        """Send a text; mentions and commands in it are found unless `entities` are given.

        `speaking_as` the group itself is an anonymous admin, as another chat that channel. In a
        channel every message is the channel's. `quote` is a part of the message replied to; the
        person selected it, unless `is_manual` is false. A message of another chat or topic may be
        replied to.
        """
        found = find_entities(text) if entities is None else tuple(entities)
        message = self._spoken(chat, reply_to, topic, speaking_as)
        if quote:
            message = replace(message, quote=_quote(reply_to, quote, is_manual=is_manual))
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
        """Send a file, such as a photo or a voice message; without `file` a sample."""
        message = self._spoken(chat, reply_to, topic, None)
        media = Media(kind, self._world.store(file or _SAMPLES[kind]))
        return await self._send_media(message, media, caption)

    async def send_album(
        self,
        chat: Chat,
        files: Sequence[MediaKind | Upload],
        caption: str = "",
        *,
        caption_at: int = 0,
        reply_to: Message | None = None,
        album_of: Message | None = None,
    ) -> list[Message]:
        """Send photos, or samples of other kinds, as an album: each is a message of its own.

        One of them has the caption, all reply to the same message. They are of the album of
        `album_of`, which came before them; without it of a new one.
        """
        album = album_of.album if album_of else self.new_album(chat)
        return [
            await self._send_media(
                replace(self._spoken(chat, reply_to, None, None), album=album),
                Media("photo", self._world.store(file))
                if isinstance(file, Upload)
                else Media(file, self._world.store(_SAMPLES[file])),
                caption if at == caption_at else "",
            )
            for at, file in enumerate(files)
        ]

    async def share(
        self,
        chat: Chat,
        content: Mapping[str, object],
        *,
        reply_to: Message | None = None,
        topic: Topic | None = None,
    ) -> Message:
        """Send what is neither text nor file, such as `contents.location(48.1, 11.5)`."""
        message = self._spoken(chat, reply_to, topic, None)
        return await self._send(replace(message, content=content))

    async def move(self, message: Message, latitude: float, longitude: float) -> Message:
        """Move a live location: the bot gets an edited message."""
        seen = self._seen(message)
        assert isinstance(seen, chats.Message)
        period = seen.content["location"]
        assert isinstance(period, dict)
        moved = location(latitude, longitude, live_period_s=period["live_period"])
        edited = replace(seen, content=moved, edited_at=self._world.account.now())
        message.chat.change(edited)
        await self._world.publish(edited, is_edited=True)
        return edited

    async def forward(
        self,
        chat: Chat,
        messages: Sequence[Message | str],
        *,
        topic: Topic | None = None,
        origin: Mapping[str, object] | None = None,
        comment: str = "",
    ) -> list[Message]:
        """Forward messages; each arrives by itself, after the `comment` if there is one.

        A text as a message needs an `origin`, such as `contents.from_hidden_user("Carla", 1)`; it
        also replaces the origin of messages.
        """
        if comment:
            await self.say(chat, comment, topic=topic)
        written = [
            chats.Message(chat, None, text=each) if isinstance(each, str) else each
            for each in messages
        ]
        if origin:
            written = [replace(each, origin=origin) for each in written]
        if not all(origin_of(each) for each in written):
            raise ValueError("a text has no origin of its own")
        return await super().forward(chat, written, topic=topic)

    async def edit(self, message: Message, text: str) -> Message:
        """Change the text or caption of a message; return it as it is now."""
        return await super().edit(self._seen(message), text)

    async def delete(self, message: Message) -> None:
        """Delete a message for everybody; bots get no update."""
        message.chat.remove(self._seen(message))
        await self._world.account.changes.tell()

    async def react(self, message: Message, *emoji: str) -> None:
        """React to a message; no emoji takes the reaction away.

        The bot is told of reactions in private chats, and in groups where it is an admin.
        """
        chat = chats.tested(message.chat)
        old = chat.react(self._seen(message), self.user, emoji)
        body = reaction_shape(self._world.account, message, self.user, old, emoji)
        bot = chat.members[self._world.account.bot.id]
        if chat.kind == "private" or bot.is_admin:
            await self._world.updates.add("message_reaction", f"reactions {chat.id}", body)

    async def open_topic(
        self, chat: chats.Chat, name: str, *, is_name_implicit: bool = False
    ) -> Topic:
        """Open a topic; Telegram names it by itself if the name is implicit."""
        topic = chat.topic(name, creator=self.user, is_name_implicit=is_name_implicit)
        await self._world.publish(chat.messages[-1])
        return topic

    async def rename_topic(self, chat: chats.Chat, topic: Topic, name: str) -> Topic:
        """Give a topic another name."""
        renamed = chat.rename_topic(replace(topic, name=name), self.user)
        await self._world.publish(chat.messages[-1])
        return renamed

    async def block(self) -> None:
        """Block the bot."""
        chat = self._world.private_chat(self.user)
        chat.closed = partial(ForbiddenError, "bot was blocked by the user")
        await self._world.move_bot(chat, "kicked", by=self.user)

    async def unblock(self) -> None:
        """Let the bot write again."""
        chat = self._world.private_chat(self.user)
        chat.closed = None
        await self._world.move_bot(chat, "member", by=self.user)

    async def kick_bot(self, chat: chats.Chat) -> None:
        """Remove the bot from a group."""
        chat.closed = partial(ForbiddenError, f"bot was kicked from the {chat.kind} chat")
        await self._world.move_bot(chat, "kicked", by=self.user)

    async def take_bot_in(self, chat: chats.Chat) -> None:
        """Add the bot to a group again after it was removed."""
        chat.closed = None
        await self._world.move_bot(chat, "member", by=self.user)

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
        is_elsewhere = reply_to and (
            reply_to.chat is not chat or (topic and reply_to.topic_id != topic.id)
        )
        inside = None if is_elsewhere else reply_to
        topic_id = topic.id if topic else inside.topic_id if inside else 0
        message = chats.Message(
            chat,
            self.user,
            topic_id=topic_id,
            reply_to=inside and (chat.message(inside.id) or inside),
            external_reply=reply_to if is_elsewhere else None,
        )
        if chat.kind == "channel":
            return replace(message, sender=None, sender_chat=chat)
        if speaking_as is None:
            return message
        sender = ANONYMOUS_ADMIN if speaking_as is chat else CHANNEL_POSTER
        return replace(message, sender=sender, sender_chat=speaking_as)

    def _forwarded(self, message: Message, chat: Chat, topic: Topic | None) -> Message:
        forwarded = super()._forwarded(message, chat, topic)
        if isinstance(message, chats.Message) and isinstance(forwarded, chats.Message):
            return replace(forwarded, content=message.content)
        return forwarded

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


def _quote(replied: Message | None, text: str, *, is_manual: bool) -> Quote:
    quote = find_quote(replied, text) if replied else None
    if quote is None:
        raise ValueError(f"{text!r} is not in {replied}")
    return replace(quote, is_manual=is_manual)
