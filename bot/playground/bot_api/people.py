"""What people do: write, send files, edit, forward, press buttons, stop the bot.

Each act changes a chat as people see it and becomes an update for the bot.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from bot.playground.bot_api.chats import ChatMessage, LocalChat
from bot.playground.bot_api.shapes import (
    chat_shape,
    message_shape,
    origin_of,
    present,
    user_shape,
)
from bot.playground.bot_api.values import Media, MediaKind, MessageEntity, Topic, UploadedFile, User
from bot.playground.bot_api.world import Press, World

_PICTURES = {
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/png": re.compile(rb"\x89PNG\r\n"),
    "image/gif": re.compile(rb"GIF8"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
"""Pictures that are sent as photos, and how their files begin."""
_MENTION = re.compile(r"(?<!\w)@[a-zA-Z0-9_]{4,32}(?!\w)")
_COMMAND = re.compile(r"(?<![\w/<>])/[a-zA-Z0-9_]{1,64}(?:@[a-zA-Z0-9_]{3,32})?(?![\w/<>@])")


def utf16_length(text: str) -> int:
    """Return how many UTF-16 units `text` has; half a surrogate pair counts as one."""
    return len(text) + sum(character > "\uffff" for character in text)


def find_entities(text: str) -> tuple[MessageEntity, ...]:
    """Return the mentions and commands in what a person wrote, in their order."""
    kinds = (("mention", _MENTION), ("bot_command", _COMMAND))
    found = [
        MessageEntity(kind, utf16_length(text[: match.start()]), utf16_length(match[0]))
        for kind, pattern in kinds
        for match in pattern.finditer(text)
    ]
    return tuple(sorted(found, key=lambda entity: entity.offset))


def kind_of(file: UploadedFile) -> MediaKind:
    """Return as what a file is sent: as a photo, a voice message or a document."""
    beginning = _PICTURES.get(file.mime_type)
    if beginning and beginning.match(file.content):
        return "photo"
    return "voice" if file.mime_type.startswith("audio/") else "document"


class LocalPerson:
    """A person with an account."""

    def __init__(self, world: World, user: User) -> None:
        self.user = user
        self._world = world

    @property
    def id(self) -> int:
        """The id of the account."""
        return self.user.id

    def switch_language(self, language_code: str) -> None:
        """Change the language of this person's Telegram, in every chat."""
        self.user = replace(self.user, language_code=language_code)
        self._world.users[self.id] = self.user
        for chat in self._world.chats.values():
            if self.id in chat.members:
                chat.members[self.id] = replace(chat.members[self.id], user=self.user)

    async def say(
        self,
        chat: LocalChat,
        text: str,
        *,
        reply_to: ChatMessage | None = None,
        topic: Topic | None = None,
    ) -> ChatMessage:
        """Send a text; mentions and commands in it become entities."""
        message = self._message(chat, reply_to, topic)
        return await self._send(replace(message, text=text, entities=find_entities(text)))

    async def send_files(
        self,
        chat: LocalChat,
        files: Sequence[UploadedFile],
        *,
        caption: str = "",
        reply_to: ChatMessage | None = None,
        topic: Topic | None = None,
    ) -> list[ChatMessage]:
        """Send images as photos, sounds as voice messages, other files as documents.

        Several photos are an album. The first message has the caption.
        """
        is_album = len(files) > 1 and {kind_of(file) for file in files} == {"photo"}
        message = self._message(chat, reply_to, topic)
        message = replace(message, album=self.new_album(chat) if is_album else "")
        media = [Media(kind_of(file), self._world.store(file)) for file in files]
        captions = [caption, *([""] * len(files))]
        return [
            await self._send_media(message, *each) for each in zip(media, captions, strict=False)
        ]

    def new_album(self, chat: LocalChat) -> str:
        """Return the id of a new album."""
        return f"{self._world.account.now()}{len(chat.messages)}"

    async def edit(self, message: ChatMessage, text: str) -> ChatMessage:
        """Change the text or caption of a message; return it as it is now."""
        now = self._world.account.now()
        edited = replace(message, text=text, entities=find_entities(text), edited_at=now)
        message.chat.change(edited)
        await self._world.publish(edited, is_edited=True)
        return edited

    async def forward(
        self, chat: LocalChat, messages: Sequence[ChatMessage], *, topic: Topic | None = None
    ) -> list[ChatMessage]:
        """Forward messages; each arrives by itself and names its origin."""
        return [await self._send(self._forwarded(each, chat, topic)) for each in messages]

    async def press(self, message: ChatMessage, button: str) -> Press:
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

    async def stop(self, chat: LocalChat, topic: Topic | None = None) -> int:
        """Press Stop under what the bot is writing and return the draft's id.

        Raise `ValueError` if there is no such button.
        """
        topic_id = topic.id if topic else 0
        draft = chat.stop_draft(topic_id)
        if draft is None:
            raise ValueError(f"no draft in {chat} can be stopped")
        body = {"chat": chat_shape(chat), "draft_id": draft.id}
        body |= present(message_thread_id=topic_id)
        await self._world.updates.add("stopped_message_generation", f"stop {chat.id}", body)
        return draft.id

    def _message(
        self, chat: LocalChat, reply_to: ChatMessage | None, topic: Topic | None
    ) -> ChatMessage:
        topic_id = topic.id if topic else reply_to.topic_id if reply_to else 0
        return ChatMessage(chat, self.user, topic_id=topic_id, reply_to=reply_to)

    def _forwarded(self, message: ChatMessage, chat: LocalChat, topic: Topic | None) -> ChatMessage:
        return replace(
            self._message(chat, None, topic),
            text=message.text,
            entities=message.entities,
            media=message.media,
            origin=origin_of(message),
        )

    async def _send_media(self, message: ChatMessage, media: Media, caption: str) -> ChatMessage:
        entities = find_entities(caption)
        return await self._send(replace(message, media=media, text=caption, entities=entities))

    async def _send(self, message: ChatMessage) -> ChatMessage:
        sent = message.chat.add(message)
        await self._world.publish(sent)
        return sent
