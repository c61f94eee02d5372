"""The local Telegram with what only tests need: faults, refusals, drafts, deliveries."""

from bot.playground.bot_api.calls import Answer, Call
from bot.playground.bot_api.chats import Chat, Message
from bot.playground.bot_api.delivery import Pace
from bot.playground.bot_api.faults import (
    DropConnection,
    FloodWait,
    Hang,
    Refuse,
    SentThenDrop,
    ServerError,
    SlowAnswer,
)
from bot.playground.bot_api.formatting import entity_text, utf16_length
from bot.playground.bot_api.people import Person
from bot.playground.bot_api.server import BotApiServer
from bot.playground.bot_api.updates import Update, Waiting
from bot.playground.bot_api.values import Button, Entity, Topic, Upload, User
from bot.playground.bot_api.world import Press

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
    "entity_text",
    "utf16_length",
]
