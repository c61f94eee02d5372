"""A small Telegram on this machine: what the playground's page and its bot need of the Bot API."""

from bot.playground.bot_api.chats import ChatMessage, LocalChat
from bot.playground.bot_api.people import LocalPerson
from bot.playground.bot_api.server import BotApiServer
from bot.playground.bot_api.values import Topic, UploadedFile, User

__all__ = [
    "BotApiServer",
    "ChatMessage",
    "LocalChat",
    "LocalPerson",
    "Topic",
    "UploadedFile",
    "User",
]
