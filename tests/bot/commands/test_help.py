"""`/help` knows every command that the bot answers."""

import re

from bot.commands.build import Running, command_room
from bot.commands.sentences import Sentences
from bot.documents.build import document_room
from bot.language.catalogue import Catalogue
from bot.model.resting import Rest
from bot.telegram.bot_account import BotIdentity
from config.settings import Settings
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS
from tests.quiet_chat import QuietChat

UNLISTED = {"start"}
"""What Telegram sends by itself, before anybody asks for help."""

ME = BotIdentity(42, "ricordo_bot", "Ricordo", can_read_all_group_messages=False)


async def test_help_names_every_command_that_is_answered(
    store: RedisClient, tokens: TokenCounter
) -> None:
    settings, sentences = Settings(), Sentences(Catalogue())
    memory = Memory(store, 42, tokens, None, OPTIONS)
    own = command_room(settings, memory, QuietChat(), sentences, Running(ME, Rest()))
    files = document_room(settings, memory, QuietChat(), sentences, lambda _: None)

    pages = ("help.private", "help.group", "help.admin")
    told = " ".join(sentences.text("en", page, username="ricordo_bot") for page in pages)

    answered = {*own.commands, *files.commands}
    assert answered - UNLISTED == {*re.findall(r"/([a-z_]+)", told)}
