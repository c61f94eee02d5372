"""Builds the behaviors of a bot: the built-in ones, and those that the operator names."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from bot.own_classes import UnusableClass, built, class_at, required_arguments
from config.settings import Settings
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.behavior_store import BehaviorStore
from memory.behaviors.chat_instructions import ChatInstructions
from memory.behaviors.knowledge_base import KnowledgeBase
from memory.behaviors.learning_behavior import Cadence, LearningBehavior
from memory.behaviors.manager import AIContextBehaviorManager
from memory.behaviors.other_topics import OtherTopics
from memory.behaviors.reach import EVERYWHERE, reaches_of
from memory.behaviors.reminder_tools import ReminderTools
from memory.behaviors.running_state import RunningState
from memory.behaviors.synopses import NarrativeOptions, Synopses
from memory.behaviors.text_rag import TextRag, TextRagOptions
from memory.behaviors.tool import Tool
from memory.behaviors.user_facts import UserFacts
from memory.learning.learner import LearningConfig
from memory.learning.tool_writes import without_domain
from memory.memory import Memory
from memory.scopes.scopes import Scopes
from memory.text.internal_model import InternalModel

_NAME = re.compile("[a-z][a-z0-9_]{0,31}")
_TOOL_NAME = re.compile("[a-zA-Z0-9_-]{1,64}")
"""What model servers take; with another name they would refuse every prompt."""
_TAKEN = {each.name for each in (AIContextBehavior, RunningState, UserFacts, Synopses)}
"""Names that stand in stored field names of ours."""
_BATCH_TOKENS = 3_000
_OUTSIDE_SHARE = 0.4
"""The definitions of tools from outside take at most this share of the prompt."""
_TIME_LIMIT_S = 8.0
"""For one hook of one behavior. The narrative inside a hook has a limit of its own."""


class OutsideTools(AIContextBehavior):
    """The tools of MCP servers."""

    name = "mcp"

    def __init__(self, functions: Sequence[Tool[Any]]) -> None:
        self.functions = functions


async def open_behaviors(
    settings: Settings,
    memory: Memory,
    model: InternalModel,
    on_refusal: Callable[[str], None] = lambda _: None,
) -> AIContextBehaviorManager:
    """Return the bot's behaviors with the tools of `MCP_SERVERS`; raise as `behaviors_of` does."""
    if not settings.mcp_servers:
        return behaviors_of(settings, memory, model, on_refusal=on_refusal)
    from bot.mcp.outside_tools import list_outside_tools  # noqa: PLC0415 - it takes a second

    outside = await list_outside_tools(
        settings.mcp_servers,
        memory.tokens,
        int(settings.prompt_tokens * _OUTSIDE_SHARE),
        settings.tool_timeout_s,
    )
    return behaviors_of(settings, memory, model, outside, on_refusal)


def behaviors_of(
    settings: Settings,
    memory: Memory,
    model: InternalModel,
    outside: Sequence[Tool[Any]] = (),
    on_refusal: Callable[[str], None] = lambda _: None,
) -> AIContextBehaviorManager:
    """Return the bot's behaviors in the order of the prompt; `outside` are tools of MCP servers.

    `on_refusal` is called with "learning" or "tool" if an update of `domain` from there is refused.
    Raise `UnusableClass` if a class of the operator cannot be used, and `FunctionNameClash` if
    two tools of behaviors have one name.
    """
    scopes, tokens, zone = memory.scopes, memory.tokens, settings.timezone
    cadence = _cadence(settings)
    narrative = NarrativeOptions(settings.recall_narrative)
    state = RunningState(scopes, domain_of(settings), cadence, on_refusal)
    kinds: dict[str, AIContextBehavior] = {
        "state": state,
        "facts": UserFacts(scopes, tokens, zone, cadence),
        "synopses": Synopses(scopes, tokens, model, zone, narrative),
    }
    behaviors: list[AIContextBehavior] = [ChatInstructions(scopes)]
    behaviors += [behavior for kind, behavior in kinds.items() if kind in settings.learn]
    if settings.documents != "off":
        behaviors.append(TextRag(scopes, tokens, _rag_options(settings)))
    behaviors.append(OtherTopics(memory.histories))
    behaviors.append(ReminderTools(memory.reminders, memory.time_zones, zone))
    reaches = reaches_of(settings.behaviors)
    _check_names(settings.behaviors)
    knowledge_base = state.model if "state" in settings.learn else None
    for path, reach in reaches.items():
        behaviors.append(_build(path, memory.scopes, knowledge_base))
        if reach != EVERYWHERE:
            behaviors[-1].reach = reach
    behaviors.append(OutsideTools(outside))
    return AIContextBehaviorManager(behaviors, _TIME_LIMIT_S)


def _rag_options(settings: Settings) -> TextRagOptions:
    """Return what the operator chose; prompts that are not set stay ours."""
    options = TextRagOptions(
        namespaces=reaches_of(settings.document_namespaces),
        by_tool=settings.documents == "tool",
        k=settings.document_k,
        budget_tokens=settings.document_tokens,
    )
    return replace(
        options,
        prompt=settings.document_prompt or options.prompt,
        tool_prompt=settings.document_tool_prompt or options.tool_prompt,
    )


def _cadence(settings: Settings) -> Cadence:
    """Return how often to learn: always before the window drops messages that are not learned."""
    exchanges = settings.window_messages // 2
    return Cadence(
        every_turns=max(1, min(settings.learn_every_turns, exchanges // 2)),
        after_s=settings.learn_after_s,
        max_tokens=min(_BATCH_TOKENS, settings.window_tokens // 2),
    )


def domain_of(settings: Settings) -> type[BaseModel] | None:
    """Return the operator's model for the running state, or None; raise `UnusableClass`."""
    if settings.knowledge_base_model is None:
        return None
    model = class_at("KNOWLEDGE_BASE_MODEL", settings.knowledge_base_model)
    if not issubclass(model, BaseModel):
        raise UnusableClass(f"KNOWLEDGE_BASE_MODEL: {model.__name__} is not a pydantic model")
    return model


def learning_config(
    settings: Settings, behaviors: AIContextBehaviorManager, model: InternalModel
) -> LearningConfig:
    """Return the behaviors that learn, and the internal model that they use."""
    learning = [each for each in behaviors.behaviors if isinstance(each, LearningBehavior)]
    states = [each for each in behaviors.behaviors if isinstance(each, RunningState)]
    with_domain = states[0].with_domain if states else without_domain
    return LearningConfig(learning, model, with_domain, settings.openai_memory_model)


def _build(
    path: str, scopes: Scopes, knowledge_base: type[KnowledgeBase] | None
) -> AIContextBehavior:
    """Build an operator's behavior; if its constructor takes an argument, pass it a store."""
    kind = class_at("BEHAVIORS", path)
    name = getattr(kind, "name", "")
    required = required_arguments(kind)
    if required > 1:
        raise UnusableClass(f"BEHAVIORS: {path} requires more arguments than its store")
    is_named = bool(_NAME.fullmatch(name)) and name not in _TAKEN
    if not is_named and (required or issubclass(kind, LearningBehavior)):
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


def _check_names(paths: Sequence[str]) -> None:
    """Refuse two behaviors with one name, because they would share their stored data.

    One class may be named more than once for different chats.
    """
    repeated = [path for path, count in Counter(paths).items() if count > 1]
    classes = (class_at("BEHAVIORS", path) for path in (*reaches_of(paths), *reaches_of(repeated)))
    names = Counter(getattr(each, "name", "") for each in classes)
    names.pop(AIContextBehavior.name, None)
    if clashing := [name for name, count in names.items() if count > 1]:
        raise UnusableClass(f"BEHAVIORS: more than one has the name {clashing[0]}")
