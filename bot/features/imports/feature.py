"""What imports add to the bot."""

from bot.commands.bot_command import BotCommand
from bot.feature import Feature, Services
from bot.features.imports.importing import ImportCommand, ImportProgress, ImportStep


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, sentences = services.memory, services.sentences
    progress = ImportProgress(services.chat, sentences)
    step = ImportStep(services.files, memory, progress, sentences, services.learn)
    asked = ImportCommand(memory.confirmations, memory.mailbox, sentences)
    buttons = {
        "import": asked.agree,
        "dont_import": asked.refuse,
        "read_document": asked.read_document,
    }
    command = BotCommand(
        "import", asked.answer, "private", buttons, takes_file=True, section="memory"
    )
    return Feature(name="imports", commands=[command], steps=[step.answer])
