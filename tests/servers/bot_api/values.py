"""The small values of the local Telegram: users, formatted text, buttons, files.

`shapes` writes them as JSON.
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
class Entity:
    """A formatted part of a text; `offset` and `length` count UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""
    unix_time: int = 0
    date_time_format: str = ""


@dataclass(frozen=True, slots=True)
class FormattedText:
    """A text with its entities, in the order of their offsets."""

    text: str
    entities: tuple[Entity, ...] = ()


@dataclass(frozen=True, slots=True)
class Button:
    """An inline button: it sends `callback_data` to the bot, opens `url`, or copies a text."""

    text: str
    callback_data: str = ""
    url: str = ""
    copies: str = ""


Keyboard = tuple[tuple[Button, ...], ...]


@dataclass(frozen=True, slots=True)
class Upload:
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
    def path(self) -> str:
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
class BotCommand:
    """One line of a command menu."""

    command: str
    description: str


@dataclass(frozen=True, slots=True)
class Quote:
    """The part of a message that a reply quotes; `position` counts UTF-16 units."""

    text: str
    position: int
    entities: tuple[Entity, ...] = ()
    is_manual: bool = True


def utf16_length(text: str) -> int:
    """Return how many UTF-16 units `text` has; half a surrogate pair counts as one."""
    return len(text) + sum(character > "\uffff" for character in text)


def present(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value}
