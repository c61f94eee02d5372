"""The small values of the local Telegram: users, formatted text, buttons, files, refusals.

`shapes` writes them as JSON.

    ApiError                any answer that is not ok
    ├── BadRequestError     400: the parameters are wrong, or what they name does not exist
    └── NotFoundError       404: no such method or file

The texts of refusals are Telegram's own, from the source of its Bot API server, because clients
tell refusals apart by their texts.
"""

from dataclasses import dataclass, field
from typing import Literal

MediaKind = Literal[
    "photo", "voice", "sticker", "document", "video", "video_note", "audio", "animation"
]


@dataclass(frozen=True, slots=True)
class User:
    """A person or a bot; an empty text is an absent field."""

    id: int
    first_name: str
    last_name: str = ""
    username: str = ""
    language_code: str = ""
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class MessageEntity:
    """A formatted part of a text; `offset` and `length` count UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""
    custom_emoji_id: str = ""
    user: User | None = None
    unix_time: int = 0
    date_time_format: str = ""


@dataclass(frozen=True, slots=True)
class FormattedText:
    """A text with its entities, in the order of their offsets."""

    text: str
    entities: tuple[MessageEntity, ...] = ()


@dataclass(frozen=True, slots=True)
class InlineButton:
    """An inline button: it sends `callback_data` to the bot, opens `url`, or copies a text."""

    text: str
    callback_data: str = ""
    url: str = ""
    copies: str = ""


Keyboard = tuple[tuple[InlineButton, ...], ...]


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that is sent to Telegram."""

    content: bytes = field(repr=False)
    name: str = ""
    mime_type: str = ""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that Telegram keeps."""

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
        """The path for downloads, as `getFile` returns it."""
        return f"files/{self.id}"


@dataclass(frozen=True, slots=True)
class Media:
    """The file of a message."""

    kind: MediaKind
    file: StoredFile


@dataclass(frozen=True, slots=True)
class Topic:
    """A thread of a forum; its id is that of the message that created it."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class MenuCommand:
    """One line of a command menu."""

    command: str
    description: str


class ApiError(Exception):
    """Raised when a call is refused; the HTTP side turns it into an answer."""

    def __init__(self, status: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


class BadRequestError(ApiError):
    """Raised for parameters that make no sense, and for unknown chats, messages and files."""

    def __init__(self, why: str, **parameters: int) -> None:
        super().__init__(400, f"Bad Request: {why}", **parameters)
        self.why = why


class NotFoundError(ApiError):
    """Raised for an unknown method or file."""

    def __init__(self, why: str = "") -> None:
        super().__init__(404, f"Not Found: {why}" if why else "Not Found")
