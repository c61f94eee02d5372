"""What people do: write, send files, edit, quote, press buttons, stop, block, migrate.

Each act changes a chat as people see it and becomes an update for the bot. An act that is
impossible in Telegram raises `ValueError`, because the test is wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from bot.playground.scene import find_entities
from tests.servers.bot_api.chats import Chat, Message
from tests.servers.bot_api.contents import find_quote
from tests.servers.bot_api.errors import ApiError, BadRequestError
from tests.servers.bot_api.shapes import chat_shape, message_shape, reaction_shape, user_shape
from tests.servers.bot_api.values import Entity, Media, MediaKind, Quote, Topic, Upload, User
from tests.servers.bot_api.world import Press, World

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


def _entities(text: str) -> tuple[Entity, ...]:
    """Return the mentions and commands in what a person wrote, in their order."""
    return tuple(Entity(each.type, each.offset, each.length) for each in find_entities(text))


class Person:
    """A person with an account; another bot acts like a person."""

    def __init__(self, world: World, user: User) -> None:
        self.user = user
        self._world = world

    @property
    def id(self) -> int:
        return self.user.id

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
    ) -> Message:
        """Send a text; mentions and commands in it are found unless `entities` are given.

        `speaking_as` the group itself is an anonymous admin, as another chat that channel. `quote`
        is a part of the message replied to, which may be one of another chat or topic.
        """
        found = _entities(text) if entities is None else tuple(entities)
        message = self._message(chat, reply_to, topic, speaking_as)
        if quote:
            message = replace(message, quote=_quote(reply_to, quote))
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
        message = self._message(chat, reply_to, topic)
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
        new = f"{self._world.account.now()}{len(chat.messages)}"
        message = replace(self._message(chat, reply_to), album=album_of.album if album_of else new)
        return [
            await self._send_media(
                message,
                Media("photo", self._world.store(file))
                if isinstance(file, Upload)
                else Media(file, self._world.store(_SAMPLES[file])),
                caption if at == caption_at else "",
            )
            for at, file in enumerate(files)
        ]

    async def share(self, chat: Chat, content: Mapping[str, object]) -> Message:
        """Send what is neither text nor file, such as `contents.location(48.1, 11.5)`."""
        return await self._send(replace(self._message(chat, None), content=content))

    async def edit(self, message: Message, text: str) -> Message:
        now = self._world.account.now()
        edited = replace(_seen(message), text=text, entities=_entities(text), edited_at=now)
        edited.chat.change(edited)
        await self._world.publish(edited, is_edited=True)
        return edited

    async def delete(self, message: Message) -> None:
        message.chat.remove(_seen(message))
        await self._world.account.changes.tell()

    async def react(self, message: Message, *emoji: str) -> None:
        """React to a message; no emoji takes the reaction away.

        The bot is told of reactions in private chats, and in groups where it is an admin.
        """
        chat = message.chat
        old = chat.react(_seen(message), self.user, emoji)
        body = reaction_shape(self._world.account, message, self.user, old, emoji)
        bot = chat.members[self._world.account.bot.id]
        if chat.kind == "private" or bot.is_admin:
            await self._world.updates.add("message_reaction", f"reactions {chat.id}", body)

    async def press(self, message: Message, button: str) -> Press:
        """Press a button of `message` by its text or callback data; raise `ValueError` for none.

        The button is looked up in `message` as it was given: people press what they still see.
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

    async def stop(self, chat: Chat) -> int:
        """Press Stop under what the bot is writing outside topics and return the draft's id.

        Raise `ValueError` if there is no such button.
        """
        draft = chat.stop_draft()
        if draft is None:
            raise ValueError(f"no draft in {chat} can be stopped")
        body = {"chat": chat_shape(chat), "draft_id": draft.id}
        await self._world.updates.add("stopped_message_generation", f"stop {chat.id}", body)
        return draft.id

    async def open_topic(self, chat: Chat, name: str, *, is_name_implicit: bool = False) -> Topic:
        """Open a topic; Telegram names it by itself if the name is implicit."""
        topic = chat.topic(name, creator=self.user, is_name_implicit=is_name_implicit)
        await self._world.publish(chat.messages[-1])
        return topic

    async def rename_topic(self, chat: Chat, topic: Topic, name: str) -> Topic:
        renamed = chat.rename_topic(replace(topic, name=name), self.user)
        await self._world.publish(chat.messages[-1])
        return renamed

    async def block(self) -> None:
        chat = self._world.private_chat(self.user)
        chat.closed = partial(ApiError, 403, "Forbidden: bot was blocked by the user")
        await self._world.move_bot(chat, "kicked", by=self.user)

    async def unblock(self) -> None:
        await self.take_bot_in(self._world.private_chat(self.user))

    async def kick_bot(self, chat: Chat) -> None:
        chat.closed = partial(ApiError, 403, f"Forbidden: bot was kicked from the {chat.kind} chat")
        await self._world.move_bot(chat, "kicked", by=self.user)

    async def take_bot_in(self, chat: Chat) -> None:
        """Add the bot to a group again after it was removed."""
        chat.closed = None
        await self._world.move_bot(chat, "member", by=self.user)

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
        topic: Topic | None = None,
        speaking_as: Chat | None = None,
    ) -> Message:
        if self.id not in chat.members:
            raise ValueError(f"{self.user} is not in {chat}")
        is_elsewhere = reply_to and (
            reply_to.chat is not chat or (topic and reply_to.topic_id != topic.id)
        )
        inside = None if is_elsewhere else reply_to
        topic_id = topic.id if topic else inside.topic_id if inside else 0
        message = Message(
            chat,
            self.user,
            topic_id=topic_id,
            reply_to=inside and (chat.message(inside.id) or inside),
            external_reply=reply_to if is_elsewhere else None,
        )
        if speaking_as is None:
            return message
        sender = ANONYMOUS_ADMIN if speaking_as is chat else CHANNEL_POSTER
        return replace(message, sender=sender, sender_chat=speaking_as)

    async def _send_media(self, message: Message, media: Media, caption: str) -> Message:
        entities = _entities(caption)
        return await self._send(replace(message, media=media, text=caption, entities=entities))

    async def _send(self, message: Message) -> Message:
        chat = message.chat
        if chat.kind == "private":
            if chat.members[self._world.account.bot.id].status == "kicked":
                await self.unblock()  # Telegram requires it before a person can write again
            chat.closed = None
        sent = chat.add(message)
        await self._world.publish(sent)
        return sent


def _seen(message: Message) -> Message:
    now = message.chat.message(message.id)
    if now is None:
        raise ValueError(f"{message} is deleted")
    return now


def _quote(replied: Message | None, text: str) -> Quote:
    quote = find_quote(replied, text) if replied else None
    if quote is None:
        raise ValueError(f"{text!r} is not in {replied}")
    return replace(quote, is_manual=True)
