"""The local Telegram for tests: the playground's, with all that only tests need."""

from bot.playground.bot_api.chats import ChatMessage as Message
from bot.playground.bot_api.people import utf16_length
from bot.playground.bot_api.update_queue import Update, Waiting
from bot.playground.bot_api.values import InlineButton as Button
from bot.playground.bot_api.values import MessageEntity as Entity
from bot.playground.bot_api.values import Topic, User
from bot.playground.bot_api.values import UploadedFile as Upload
from bot.playground.bot_api.world import Press
from tests.servers.bot_api import contents
from tests.servers.bot_api.calls import Answer, Call
from tests.servers.bot_api.chats import Chat, tested
from tests.servers.bot_api.delivery import Pace
from tests.servers.bot_api.faults import (
    DropConnection,
    FloodWait,
    Hang,
    Refuse,
    SentThenDrop,
    ServerError,
    SlowAnswer,
)
from tests.servers.bot_api.formatting import entity_text
from tests.servers.bot_api.people import Person
from tests.servers.bot_api.server import BotApiServer

__all__ = [
    "Answer",
    "BotApiServer",
    "Button",
    "Call",
    "Chat",
    "DropConnection",
    "Entity",
    "FloodWait",
    "Hang",
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
    "tested",
    "utf16_length",
]
