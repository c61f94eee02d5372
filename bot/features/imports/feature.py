"""What imports add to the bot."""

from collections.abc import Mapping
from functools import partial

from bot.commands.bot_command import BotCommand, ButtonHandler
from bot.feature import Feature, Services
from bot.features.imports.importing import DOCUMENT, Importing, ImportProgress


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, sentences = services.memory, services.sentences
    progress = ImportProgress(services.chat, sentences)
    imports = Importing(services.files, memory, progress, sentences, services.learn)
    buttons: Mapping[str, ButtonHandler] = {
        "import": imports.agree,
        "dont_import": imports.refuse,
        "read_document": partial(imports.agree, read_as=DOCUMENT),
    }
    command = BotCommand(
        "import", imports.say_how, "private", buttons, takes_file=True, section="memory"
    )
    return Feature(name="imports", commands=[command], steps=[imports.answer])
