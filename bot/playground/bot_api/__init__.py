"""A small Telegram on this machine: what the playground's page and its bot need of the Bot API."""

from bot.playground.bot_api.chats import Chat, Message
from bot.playground.bot_api.people import Person
from bot.playground.bot_api.server import BotApiServer
from bot.playground.bot_api.values import Topic, Upload, User

__all__ = ["BotApiServer", "Chat", "Message", "Person", "Topic", "Upload", "User"]
