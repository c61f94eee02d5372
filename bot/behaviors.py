"""Which behaviors a bot has: the built-in ones, and those that the operator names."""

from importlib import import_module
from typing import Any

from config.settings import Settings
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.manager import AIContextBehaviorManager
from memory.learning.learner import Teaching
from memory.learning.lesson import LearningBehavior
from memory.learning.model import InternalModel
from memory.memory import Memory

_TIME_LIMIT_S = 8.0
"""For one hook of one behavior; the narrative within it has a limit of its own."""


class UnusableBehavior(Exception):  # noqa: N818 - says when
    """Raised at start when a class that the operator names cannot be used; the text says why."""


def behaviors_of(
    settings: Settings, memory: Memory, model: InternalModel
) -> AIContextBehaviorManager:
    """Return the bot's behaviors, in the order in which the model is told of them.

    Raise `UnusableBehavior` or `FunctionNameClash`.
    """
    own = [_made(path) for path in settings.behaviors]
    return AIContextBehaviorManager(own, _TIME_LIMIT_S)


def teaching_of(behaviors: AIContextBehaviorManager, model: InternalModel) -> Teaching:
    """Return those that learn, with the model they learn by."""
    learning = [each for each in behaviors.behaviors if isinstance(each, LearningBehavior)]
    return Teaching(learning, model)


def _made(path: str) -> AIContextBehavior:
    behavior = _class_at("BEHAVIORS", path)()
    if not isinstance(behavior, AIContextBehavior):
        raise UnusableBehavior(f"BEHAVIORS: {path} is no AIContextBehavior")
    return behavior


def _class_at(setting: str, path: str) -> type[Any]:
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UnusableBehavior(f"{setting}: {path} cannot be imported") from error
    if not isinstance(found, type):
        raise UnusableBehavior(f"{setting}: {path} is no class")
    return found
