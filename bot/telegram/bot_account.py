"""Our account at Telegram: who we are, what menus and profile show, where updates are delivered."""

from dataclasses import dataclass
from typing import Literal

MenuScope = Literal["default", "private", "groups"] | int


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot's own user."""

    id: int
    username: str  # without "@"
    name: str
    can_read_all_group_messages: bool  # else privacy mode hides most of them, even plain mentions


@dataclass(frozen=True, slots=True)
class CommandMenu:
    """What "/" offers in one scope and language."""

    scope: MenuScope  # an integer is one chat
    language: str  # "" is every other one
    commands: tuple[tuple[str, str], ...]  # without slash; descriptions have up to 256 characters


@dataclass(frozen=True, slots=True)
class Description:
    """What an empty chat with us shows, at most 512 characters; language "" is every other one."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class WebhookState:
    """Where Telegram delivers updates, how many wait there, and the last failed delivery."""

    url: str  # "" if no webhook is set
    pending_updates: int
    last_error_at: int  # in Unix seconds, 0 if no delivery failed
    last_error: str
