"""The local Telegram for tests."""

from tests.servers.bot_api import contents
from tests.servers.bot_api.calls import (
    Answer,
    Call,
    DropConnection,
    FloodWait,
    Hang,
    Refuse,
    SentThenDrop,
    ServerError,
    SlowAnswer,
)
from tests.servers.bot_api.chats import Chat, Message
from tests.servers.bot_api.formatting import entity_text
from tests.servers.bot_api.people import Person
from tests.servers.bot_api.server import BOT, BotApiServer
from tests.servers.bot_api.updates import Pace, Update, Waiting
from tests.servers.bot_api.values import (
    Button,
    Entity,
    MediaKind,
    Topic,
    Upload,
    User,
    utf16_length,
)
from tests.servers.bot_api.world import Press

__all__ = [
    "BOT",
    "Answer",
    "BotApiServer",
    "Button",
    "Call",
    "Chat",
    "DropConnection",
    "Entity",
    "FloodWait",
    "Hang",
    "MediaKind",
    "Message",
    "Pace",
    "Person",
    "Press",
    "Refuse",
    "SentThenDrop",
    "ServerError",
    "SlowAnswer",
    "Topic",
    "Update",
    "Upload",
    "User",
    "Waiting",
    "contents",
    "entity_text",
    "utf16_length",
]
