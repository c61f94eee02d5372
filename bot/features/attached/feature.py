"""What behaviors that people attach add to the bot."""

from bot.commands.bot_command import BotCommand
from bot.feature import Feature, Services
from bot.features.attached.commands import VERB, BehaviorsCommand
from bot.features.attached.settings import AttachedSettings
from bot.features.attached.where import Attachments, WhereAttached
from bot.operator_classes import built_behavior, check_behavior_names


def feature(services: Services) -> Feature:
    """Return the feature; raise `UnusableClass` if a class cannot be used."""
    settings, scopes = services.own(AttachedSettings), services.memory.scopes
    paths = settings.attachable_behaviors
    everywhere = {path.partition("@")[0] for path in settings.behaviors}
    check_behavior_names((*everywhere, *paths))
    behaviors = [built_behavior(path, scopes, None, is_named=True) for path in paths]
    for each in behaviors:
        each.reach = WhereAttached(scopes=scopes, behavior=each.name)
    names = [each.name for each in behaviors]
    attachments = Attachments(services.memory, behaviors)
    command = BehaviorsCommand(names, attachments, services.access, services.sentences)
    return Feature(
        name="attached",
        commands=[BotCommand("behaviors", command.answer, buttons={VERB: command.press})],
        behaviors=behaviors,
    )
