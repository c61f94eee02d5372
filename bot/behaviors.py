"""Builds the behaviors of a bot: the built-in ones, and those that the operator names."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

import structlog
from pydantic import BaseModel

from bot.feature import Feature, Replacements
from bot.operator_classes import UnusableClass, built, class_at, replaced_by, required_arguments
from config.settings import Settings
from memory.behaviors.behavior import (
    EVERYWHERE,
    AIContextBehavior,
    AIContextBehaviorManager,
    reaches_of,
)
from memory.behaviors.behavior_store import BehaviorStore
from memory.behaviors.knowledge_base import KnowledgeBase, knowledge_base_model
from memory.behaviors.learning_behavior import Cadence, LearningBehavior
from memory.behaviors.running_state import RunningState
from memory.behaviors.synopses import Synopses
from memory.behaviors.tool import Tool
from memory.behaviors.user_facts import UserFacts
from memory.learning.learner import LearningConfig
from memory.learning.tool_writes import without_domain
from memory.memory import Memory
from memory.scopes.scopes import Scopes
from memory.text.internal_model import InternalModel
from memory.text.shape import AnswerShape

log = structlog.get_logger(__name__)

_NAME = re.compile("[a-z][a-z0-9_]{0,31}")
_TOOL_NAME = re.compile("[a-zA-Z0-9_-]{1,64}")
"""What model servers take; with another name they would refuse every prompt."""
_TAKEN = {each.name for each in (AIContextBehavior, RunningState, UserFacts, Synopses)}
"""Reserved names: fields that we store contain them."""
_BATCH_TOKENS = 3_000
_TIME_LIMIT_S = 8.0
"""For one hook of one behavior. The narrative inside a hook has a limit of its own."""


def behaviors_of(
    settings: Settings,
    memory: Memory,
    model: InternalModel,
    features: Sequence[Feature] = (),
    on_refusal: Callable[[str], None] = lambda _: None,
) -> AIContextBehaviorManager:
    """Return the bot's behaviors in the order of the prompt, those of features last.

    `on_refusal` is called with "learning" or "tool" if an update of the operator's fields is
    refused that comes from there.
    Raise `UnusableClass` if a class of the operator cannot be used, and `FunctionNameClash` if
    two tools of behaviors have one name.
    """
    scopes, tokens, zone = memory.scopes, memory.tokens, settings.timezone
    cadence = _cadence(settings)
    replaced = replaced_by(features)
    state = RunningState(scopes, _domain_of(replaced), cadence, on_refusal)
    kinds: dict[str, AIContextBehavior] = {
        "state": state,
        "facts": UserFacts(scopes, tokens, zone, cadence),
        "synopses": Synopses(scopes, tokens, model, zone, settings.recall_narrative),
    }
    behaviors = [behavior for kind, behavior in kinds.items() if kind in settings.learn]
    reaches = reaches_of(settings.behaviors)
    check_behavior_names(settings.behaviors)
    knowledge_base = state.model if "state" in settings.learn else None
    for path, reach in reaches.items():
        behaviors.append(built_behavior(path, memory.scopes, knowledge_base))
        if reach != EVERYWHERE:
            behaviors[-1].reach = reach
    behaviors += [behavior for feature in features for behavior in feature.behaviors]
    return AIContextBehaviorManager(behaviors, _TIME_LIMIT_S)


def _cadence(settings: Settings) -> Cadence:
    """Return how often to learn: always before the window drops messages that are not learned."""
    exchanges = settings.window_messages // 2
    return Cadence(
        every_turns=max(1, min(settings.learn_every_turns, exchanges // 2)),
        after_s=settings.learn_after_s,
        max_tokens=min(_BATCH_TOKENS, settings.window_tokens // 2),
    )


def _domain_of(replaced: Replacements) -> type[BaseModel] | None:
    """Return the model of further fields of the running state; raise `UnusableClass`."""
    model = replaced.knowledge_base
    if model is None:
        return None
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise UnusableClass("FEATURES: `knowledge_base` is not a pydantic model")
    why = AnswerShape.of({"state": knowledge_base_model(model)}).unconvertible.get("state")
    if why is not None:
        advice = "use flat fields without dicts; as it is, JSON mode is used"
        log.warning("no strict schema", model=model.__name__, why=why, advice=advice)
    return model


def learning_config(
    settings: Settings, behaviors: AIContextBehaviorManager, model: InternalModel
) -> LearningConfig:
    """Return the behaviors that learn, and the internal model that they use."""
    learning = [each for each in behaviors.behaviors if isinstance(each, LearningBehavior)]
    states = [each for each in behaviors.behaviors if isinstance(each, RunningState)]
    with_domain = states[0].with_domain if states else without_domain
    return LearningConfig(learning, model, with_domain, settings.openai_memory_model)


def built_behavior(
    path: str, scopes: Scopes, knowledge_base: type[KnowledgeBase] | None, *, is_named: bool = False
) -> AIContextBehavior:
    """Build an operator's behavior; if its constructor takes an argument, pass it a store.

    `is_named`: it needs a name of its own even if it stores nothing. Raise `UnusableClass`.
    """
    kind = class_at("BEHAVIORS", path)
    name = getattr(kind, "name", "")
    required = required_arguments(kind)
    if required > 1:
        raise UnusableClass(f"BEHAVIORS: {path} requires more arguments than its store")
    is_known = bool(_NAME.fullmatch(name)) and name not in _TAKEN
    if not is_known and (is_named or required or issubclass(kind, LearningBehavior)):
        raise UnusableClass(
            f"BEHAVIORS: {path} stores something, so it needs a `name` of its own ({_NAME.pattern})"
        )
    is_personal = getattr(kind, "is_personal", False)
    store = BehaviorStore(scopes, name, knowledge_base, is_personal=is_personal)
    behavior = built("BEHAVIORS", kind, store)
    if not isinstance(behavior, AIContextBehavior):
        raise UnusableClass(f"BEHAVIORS: {path} is not an AIContextBehavior")
    for tool in behavior.functions:
        if not isinstance(tool, Tool) or not _TOOL_NAME.fullmatch(tool.name):
            why = f"each of its `functions` must be a `Tool` with a name of {_TOOL_NAME.pattern}"
            raise UnusableClass(f"BEHAVIORS: {path}: {why}")
    return behavior


def check_behavior_names(paths: Sequence[str]) -> None:
    """Refuse two behaviors with one name, because they would share their stored data.

    One class may be named more than once for different chats.
    """
    repeated = [path for path, count in Counter(paths).items() if count > 1]
    classes = (class_at("BEHAVIORS", path) for path in (*reaches_of(paths), *reaches_of(repeated)))
    names = Counter(getattr(each, "name", "") for each in classes)
    names.pop(AIContextBehavior.name, None)
    if clashing := [name for name, count in names.items() if count > 1]:
        raise UnusableClass(f"BEHAVIORS: more than one has the name {clashing[0]}")
