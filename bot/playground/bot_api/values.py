"""The small values of this Telegram: people, formatted text, buttons, files.

Plain data; how each stands in JSON is `shapes`' business.
"""

from dataclasses import dataclass, field
from typing import Literal

MediaKind = Literal["photo", "voice", "sticker", "document"]


@dataclass(frozen=True, slots=True)
class User:
    """A person or a bot as Telegram shows them; empty text is an absent field."""

    id: int
    first_name: str
    last_name: str = ""
    username: str = ""
    language_code: str = ""
    is_bot: bool = False


# Telegram's own accounts, which stand as senders in front of chats.
ANONYMOUS_ADMIN = User(1087968824, "Group", username="GroupAnonymousBot", is_bot=True)
CHANNEL_POSTER = User(136817688, "Channel", username="Channel_Bot", is_bot=True)


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of a text with a meaning; `offset` and `length` count UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""
    custom_emoji_id: str = ""
    user: User | None = None


@dataclass(frozen=True, slots=True)
class FormattedText:
    """A text with its entities, in the order of their offsets."""

    text: str
    entities: tuple[Entity, ...] = ()


@dataclass(frozen=True, slots=True)
class Button:
    """An inline button: it sends `callback_data` to the bot, or opens `url`."""

    text: str
    callback_data: str = ""
    url: str = ""


Keyboard = tuple[tuple[Button, ...], ...]


@dataclass(frozen=True, slots=True)
class Upload:
    """A file on its way to Telegram."""

    content: bytes = field(repr=False)
    name: str = ""
    mime_type: str = ""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file on Telegram's disks."""

    id: str
    content: bytes = field(repr=False)
    name: str = ""
    mime_type: str = ""

    @property
    def unique_id(self) -> str:
        """The id that is the same for every bot."""
        return f"u{self.id}"

    @property
    def path(self) -> str:
        """Where `getFile` says that it can be fetched."""
        return f"files/{self.id}"


@dataclass(frozen=True, slots=True)
class Media:
    """What a message carries beside its caption."""

    kind: MediaKind
    file: StoredFile


@dataclass(frozen=True, slots=True)
class Topic:
    """A thread of a forum; `id` is that of the message which created it."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class BotCommand:
    """One line of a command menu."""

    command: str
    description: str
