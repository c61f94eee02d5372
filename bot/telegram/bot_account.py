"""Our account at Telegram: who we are, what menus and profile show, where updates are delivered."""

from dataclasses import dataclass
from typing import Literal

MenuScope = Literal["default", "private", "groups"] | int


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot's own user; `username` is without "@".

    If `can_read_all_group_messages` is false, privacy mode hides group messages from us, often even
    a plain mention.
    """

    id: int
    username: str
    name: str
    can_read_all_group_messages: bool


@dataclass(frozen=True, slots=True)
class CommandMenu:
    """What "/" offers in one scope; an integer scope is one chat, language "" is every other one.

    `commands` are pairs of a name without slash and a description of at most 256 characters.
    """

    scope: MenuScope
    language: str
    commands: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Description:
    """What an empty chat with us shows, at most 512 characters; language "" is every other one."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class WebhookState:
    """Where Telegram delivers updates, how many wait there, and the last failed delivery.

    `url` is "" if no webhook is set. `last_error_at` is in Unix seconds, 0 if no delivery failed.
    """

    url: str
    pending_updates: int
    last_error_at: int
    last_error: str
