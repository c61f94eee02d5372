"""What a turn needs of an update: the reduced forms that intake accepts.

Plain values. Reading Telegram's own types is `updates`' business.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "command", "document", "unsupported", "stranger"]


@dataclass(frozen=True, slots=True)
class Sender:
    """Who speaks; `is_person` is false for a channel, a chat or the anonymous admin account."""

    id: int
    name: str
    first_name: str = ""
    last_name: str = ""
    language: str = "en"
    is_person: bool = True


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as Telegram describes it, not fetched yet; `nbytes` is 0 where it does not say.

    `name` is one line for people; `file_id` is what `TelegramClient.download` takes.
    """

    file_id: str
    name: str
    mime_type: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """One message addressed to us.

    `topic_id` is 0 outside topics. `sent_at` is in Unix seconds. For a command `text` holds its
    arguments and `command` its name without slash and bot name. `unsupported` messages (voice,
    sticker, ...) carry their kind in `text`; a `stranger` is somebody the operator does not serve.
    A `document` has its `file`, and in `text` what was said about it. `is_own` is false where the
    words are somebody else's: forwarded, or sent by way of another bot. `replied_to` is the id of
    the message that it answers, 0 for none. `message_id` is 0 where there was no message: when
    somebody takes us into a group, that reads as their /start.
    """

    update_id: int
    chat_id: int
    topic_id: int
    is_group: bool
    message_id: int
    sent_at: int
    sender: Sender
    kind: Kind
    text: str
    command: str = ""
    file: SentFile | None = None
    is_first_party: bool = True
    replied_to: int = 0

    @property
    def is_anonymous_admin(self) -> bool:
        """Whether it was written in the name of the group itself, as only its admins can."""
        return self.is_group and self.sender.id == self.chat_id


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """A button under one of our messages; `callback_data` is what we put there.

    `asked_at` is when the message was sent (Unix seconds), 0 where Telegram no longer tells.
    """

    update_id: int
    callback_id: str
    chat_id: int
    topic_id: int
    is_group: bool
    message_id: int
    sender: Sender
    callback_data: str
    asked_at: float = 0


@dataclass(frozen=True, slots=True)
class ChatMigration:
    """A group became a supergroup: `old_chat_id` is dead, `new_chat_id` goes on."""

    update_id: int
    old_chat_id: int
    new_chat_id: int


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing for us, or nothing we may keep; `reason` is a fixed word for the counters."""

    update_id: int
    reason: str


Update = IncomingMessage | ButtonPress | ChatMigration | Ignored
