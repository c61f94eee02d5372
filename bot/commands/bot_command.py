"""What a command is: its name, who may use it, what answers it, and the buttons below its answers.

Values and types only. `build_commands` in `bot/assistant.py` lists all commands for `CommandSet`.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bot.reply.parts import Button, Parts
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says; `ends_session` begins a new session after it."""

    parts: Parts
    ends_session: bool = False


Handler = Callable[[IncomingMessage, Scope], Awaitable[Answer]]
"""Answers a command in a conversation; raises `StoreError` or `TelegramError`."""

ButtonHandler = Callable[[ButtonPress, Scope, str], Awaitable[Parts]]
"""Acts on a button that was pressed in a conversation; gets the callback data after the verb, too.

The parts replace the message with the button; () leaves it as it is. Raises `NotConfirmed` if the
press counts for nothing, `ShownOnTop`, `StoreError` and `TelegramError`."""


class ShownOnTop(Exception):
    """Raised by a button to show a sentence on top of the chat and leave its message as it is."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


@dataclass(frozen=True, slots=True)
class MemoryWords:
    """A setting of memory that a feature brings: `/memory <word>`."""

    words: Sequence[str]
    change: Callable[[Scope, str], Awaitable[str]]  # returns the key of what to say then
    # Gets a conversation and its facts' scope; returns the key of a line below the list, or "".
    shown: Callable[[Scope, ScopeMemory], str]


MemoryLine = Callable[[str, ScopeMemory, ScopeMemory], str]
"""Returns a line of `/memory`, or "", for a language, a conversation and the scope of its facts."""

PrivacyPart = Callable[[str, Scope], Awaitable[tuple[str, Button]]]
"""Gets a language and a conversation; returns a text and a button to show below `/privacy` to
people who may change what is stored there."""

NOTHING = re.compile(r"(?!)")
ANYTHING = re.compile(r".+", re.DOTALL)  # for a command that reads the words behind it itself

Audience = Literal["everyone", "private", "groups", "operators", "unlisted"]
"""Where menus and /help list a command; `unlisted` is in neither."""

Section = Literal["memory", "talk", "data"]  # the sections of /help, in their order

IsUseful = Callable[[IncomingMessage, Scope], Awaitable[bool]]
"""Returns whether /help lists a command for whoever sent a message in a conversation."""


@dataclass(frozen=True, slots=True)
class BotCommand:
    """One command; the sentence `commands.<name>` describes it in menus and in /help.

    One for `operators` works only for `ADMIN_USER_IDS` and only in private, and so do its buttons.
    """

    name: str
    handler: Handler
    audience: Audience = "everyone"
    # By verb, the first word of their callback data.
    buttons: Mapping[str, ButtonHandler] = field(default_factory=dict)
    # In a group only its administrators may use it; the others hear `<name>.only_group_admins`.
    group_admins_only: bool = False
    # What it understands behind its name, as the handler gets it; people say it in their language.
    words: tuple[str, ...] = ()
    takes: re.Pattern[str] = NOTHING  # any other text behind its name that it can use
    section: Section = "talk"
    is_useful: IsUseful | None = None  # None: it is always listed
    takes_file: bool = False  # what stands behind it, or the file above it, is read like a file
    uses_memory: bool = False  # off the record it and its buttons change and look up nothing
