"""What we tell Telegram about ourselves and what it tells us: plain values, nothing of its SDK."""

from dataclasses import dataclass
from typing import Literal

MenuScope = Literal["default", "private", "groups"] | int


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """Who we are; `username` is without "@".

    Unless `can_read_all_group_messages`, privacy mode hides group talk from us, often even a plain
    mention.
    """

    id: int
    username: str
    name: str
    can_read_all_group_messages: bool


@dataclass(frozen=True, slots=True)
class CommandMenu:
    """What a "/" offers in one place; an integer scope is one chat, language "" is everybody else.

    `commands` are pairs of name (without slash) and description, at most 256 characters.
    """

    scope: MenuScope
    language: str
    commands: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Description:
    """What an empty chat with us shows, at most 512 characters; language "" is everybody else."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class WebhookState:
    """Where Telegram delivers ("" when nowhere), what waits there, and its last failure to deliver.

    `last_error_at` is in Unix seconds, 0 when delivery never failed.
    """

    url: str
    pending_updates: int
    last_error_at: int
    last_error: str
