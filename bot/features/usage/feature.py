"""What `/usage` adds to the bot. The counting itself is a part of every model call."""

import re

from bot.commands.bot_command import BotCommand
from bot.feature import Feature, Services
from bot.features.usage.commands import UsageCommand, UsageReport

_CHAT_ID = re.compile(r"-?\d+")


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, report = services.memory, UsageReport(services.budget, services.sentences)
    usage = UsageCommand(memory.usage, memory.quotas, memory.mailbox, services.settings, report)
    return Feature(
        name="usage",
        commands=(
            BotCommand("usage", usage.answer, "private", takes=_CHAT_ID, is_useful=usage.is_useful),
        ),
    )
