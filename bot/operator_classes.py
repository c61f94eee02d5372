"""Loads and builds what operators name: behaviors, features, and what these put in place of ours.

A selector or an agent of theirs chooses, but our limits apply to what it returns. If it fails by an
error of its own, ours is used for the rest of the turn. The log has the type and the place of that
error, but not its text, which may repeat a person's words.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, fields, replace
from importlib import import_module
from inspect import Parameter, iscoroutinefunction, signature
from itertools import islice
from pathlib import Path
from traceback import extract_tb
from typing import Any

import structlog
from pydantic import BaseModel

from bot.agent.agent import Agent, FunctionsBasedAgent
from bot.commands.sentences import Sentences
from bot.feature import Feature, Replacements
from bot.model.model_errors import ModelError
from bot.telegram.updates import MEDIA
from config.settings import Settings
from memory.behaviors.behavior import EVERYWHERE, OFF, AIContextBehavior, Reach, reaches_of
from memory.behaviors.behavior_store import BehaviorStore
from memory.behaviors.context import AgentContext
from memory.behaviors.knowledge_base import KnowledgeBase, knowledge_base_model
from memory.behaviors.learning_behavior import LearningBehavior
from memory.behaviors.running_state import RunningState
from memory.behaviors.steps import Action, FinishAction, ToolCall
from memory.behaviors.synopses import Synopses
from memory.behaviors.tool import Tool
from memory.behaviors.user_facts import UserFacts
from memory.message import Message
from memory.scopes.scopes import Scopes
from memory.scopes.selectors import BlockWindowMessageSelector, MessageSelector
from memory.store.errors import LeaseLost, StoreError
from memory.text.internal_model import AnswerShape

log = structlog.get_logger(__name__)

_MAX_CALLS = 64  # most tool calls that one action may have; models ask for a few
_NAME = re.compile("[a-z][a-z0-9_]{0,31}")
_TOOL_NAME = re.compile("[a-zA-Z0-9_-]{1,64}")
"""What model servers take; with another name they would refuse every prompt."""
_TAKEN = {each.name for each in (AIContextBehavior, RunningState, UserFacts, Synopses)}
"""Reserved names: those of our own behaviors, and the default name."""
_ROOT, _IMPORTS = Path(__file__).parents[1], import_module.__code__.co_filename
_OURS = re.compile(rf"{re.escape(str(_ROOT))}\W(bot|memory|config)\W|{re.escape(_IMPORTS)}|<frozen")
_TIME_SHARE = 2  # one call of an operator's `next_action` gets the turn's time divided by this


class UnusableClass(Exception):
    """Raised if code that the operator names cannot be used; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnSelector:
    """An operator's selector: it gets the messages that ours gets, and may return any of them.

    They are shown in order, each once. Beyond our limits the oldest exchanges are left out.
    """

    theirs: MessageSelector
    ours: BlockWindowMessageSelector

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return what theirs chose, or what ours chooses if theirs fails."""
        try:
            chosen = {each.seq for each in islice(self.theirs.select(messages), len(messages))}
        except Exception as error:  # noqa: BLE001 - the operator's code may raise anything
            _report("selector", error)
            return self.ours.select(messages)
        within = replace(self.ours, block=1)
        return within.select([each for each in messages if each.seq in chosen])


@dataclass(slots=True, eq=False)
class OperatorAgent:
    """An operator's agent for one turn; ours decides after `max_steps` steps or a failure.

    Each decision gets `timeout_s`. After an error of the model's server ours decides, too.
    """

    theirs: Agent | None  # None after a failure
    ours: FunctionsBasedAgent
    timeout_s: float

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return what theirs decides; raise `ModelError`, `LeaseLost` or `StoreError`."""
        if self.theirs is not None and len(context.completed_steps) < self.ours.max_steps:
            try:
                async with asyncio.timeout(self.timeout_s):
                    return _action(await self.theirs.next_action(context))
            except (LeaseLost, StoreError):
                raise
            except ModelError:
                self.theirs = None
                raise
            except Exception as error:  # noqa: BLE001 - the operator's code may raise anything
                _report("agent", error)
                self.theirs = None
        return await self.ours.next_action(context)


def replaced_by(features: Iterable[Feature]) -> Replacements:
    """Return what all features replace together; raise `UnusableClass` if two replace the same."""
    found: dict[str, Any] = {}
    for feature in features:
        for each in fields(Replacements):
            if value := getattr(feature.replaces, each.name):
                if each.name in found:
                    raise UnusableClass(f"FEATURES: two features replace `{each.name}`")
                found[each.name] = value
    return Replacements(**found)


def selector_of(settings: Settings, kind: type[Any] | None = None) -> MessageSelector:
    """Return what selects the window: ours, or one of `kind`; raise `UnusableClass`."""
    ours = BlockWindowMessageSelector.in_quarters(settings.window_messages, settings.window_tokens)
    if kind is None:
        return ours
    _check_class("selector", kind, "def select(self, messages)")
    return OwnSelector(built("FEATURES", kind, ours), ours)


def agents_of(
    settings: Settings, ours: FunctionsBasedAgent, kind: type[Any] | None = None
) -> Callable[[], Agent]:
    """Return what gives each turn its agent: ours, or one of `kind`; raise `UnusableClass`."""
    if kind is None:
        return lambda: ours
    _check_class("agent", kind, "async def next_action(self, context)")
    theirs = built("FEATURES", kind, ours)
    return lambda: OperatorAgent(theirs, ours, settings.turn_timeout_s / _TIME_SHARE)


def domain_of(model: Any) -> type[BaseModel] | None:
    """Return a feature's model of further fields of the running state; raise `UnusableClass`."""
    if model is None:
        return None
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise UnusableClass("FEATURES: `knowledge_base` is not a pydantic model")
    why = AnswerShape.of({"state": knowledge_base_model(model)}).unconvertible.get("state")
    if why is not None:
        advice = "use flat fields without dicts; as it is, JSON mode is used"
        log.warning("no strict schema", model=model.__name__, why=why, advice=advice)
    return model


def built_behaviors(
    paths: Sequence[str], scopes: Scopes, knowledge_base: type[KnowledgeBase] | None
) -> list[AIContextBehavior]:
    """Build an operator's behaviors, without those that are off; raise `UnusableClass`."""
    return [
        built_behavior(path, reach, scopes, knowledge_base)
        for path, reach in reaches_of(paths).items()
        if OFF not in reach.targets
    ]


def built_behavior(
    path: str, reach: Reach, scopes: Scopes, knowledge_base: type[KnowledgeBase] | None
) -> AIContextBehavior:
    """Build a behavior, with a store if its constructor requires one; raise `UnusableClass`."""
    setting = "BEHAVIORS"
    kind = class_at(setting, path)
    if not issubclass(kind, AIContextBehavior):
        raise UnusableClass(f"{setting}: {path} is not an AIContextBehavior")
    required = _required_arguments(setting, kind)
    if required > 1:
        raise UnusableClass(f"{setting}: {path} requires more arguments than its store")
    is_known = bool(_NAME.fullmatch(kind.name)) and kind.name not in _TAKEN
    needs_name = required or OFF in reach.targets or issubclass(kind, LearningBehavior)
    if needs_name and not is_known:
        raise UnusableClass(f"{setting}: {path} needs a `name` of its own ({_NAME.pattern})")
    is_personal = getattr(kind, "is_personal", False)
    store = BehaviorStore(scopes, kind.name, knowledge_base, is_personal=is_personal)
    behavior: AIContextBehavior = built(setting, kind, store)
    if reach != EVERYWHERE:  # else the reach of its class holds
        behavior.reach = reach
    for tool in behavior.functions:
        if not isinstance(tool, Tool) or not _TOOL_NAME.fullmatch(tool.name):
            why = f"each of its `functions` must be a `Tool` with a name of {_TOOL_NAME.pattern}"
            raise UnusableClass(f"{setting}: {path}: {why}")
    return behavior


def refuse_doubled(kind: str, names: Iterable[str], setting: str = "FEATURES") -> None:
    """Raise `UnusableClass` if two of a kind have one name."""
    if doubled := sorted(name for name, count in Counter(names).items() if count > 1):
        raise UnusableClass(f"{setting}: two {kind} have the name {doubled[0]}")


def take_over(feature: Feature, sentences: Sentences) -> None:
    """Add the sentences of an operator's feature.

    Raise `UnusableClass` if one is missing, or for a kind of file that does not exist.
    """
    if unknown := sorted(feature.file_steps.keys() - set(MEDIA), key=str):
        kinds = f"{unknown[0]!r}, which is no kind of file; kinds are {', '.join(MEDIA)}"
        raise UnusableClass(f"FEATURES: {feature.name} has `file_steps` for {kinds}")
    listed = {f"commands.{each.name}" for each in feature.commands if each.audience != "unlisted"}
    if missing := sorted(listed - feature.sentences.get("en", {}).keys()):
        raise UnusableClass(f"FEATURES: {feature.name} has no English sentence {missing[0]}")
    try:
        sentences.add(feature.sentences)
    except ValueError as error:
        raise UnusableClass(f"FEATURES: {feature.name}: {error}") from None


def class_at(setting: str, path: str) -> type[Any]:
    """Return the class at `package.module:Class`; raise `UnusableClass`."""
    found = found_at(setting, path)
    if not isinstance(found, type):
        raise UnusableClass(f"{setting}: {path} is not a class")
    return found


def found_at(setting: str, path: str) -> Any:
    """Return the object at `package.module:name`; raise `UnusableClass`."""
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as error:  # a module of the operator may raise anything
        why = f"{path} cannot be imported ({type(error).__name__}{_place(error)})"
        advice = f"check name and PYTHONPATH; `python -c 'from {module} import {name}'` says why"
        raise UnusableClass(f"{setting}: {why}; {advice}") from error


def found_beside(
    features: Sequence[str], name: str, is_usable: Callable[[Any], bool], kind: str
) -> list[Any]:
    """Return the value of `name` in the module of each feature; raise `UnusableClass`.

    Modules without this name are left out. The start refuses those that cannot be imported.
    """
    found = []
    for path in dict.fromkeys(f"{each.partition(':')[0]}:{name}" for each in features):
        with suppress(UnusableClass):
            found.append((path, found_at("FEATURES", path)))
    for path, each in found:
        if not is_usable(each):
            raise UnusableClass(f"FEATURES: {path} must be a {kind}; see docs/features.md")
    return [each for _, each in found]


def _required_arguments(setting: str, kind: type[Any]) -> int:
    with building(setting, kind.__name__):  # Python knows no signature of some of its own classes
        parameters = signature(kind).parameters.values()
    return sum(
        parameter.default is Parameter.empty
        and parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        for parameter in parameters
    )


def _check_class(what: str, kind: object, method: str) -> None:
    if not isinstance(kind, type):
        raise UnusableClass(f"FEATURES: the {what} is not a class")
    is_async, name = method.startswith("async "), method.partition("(")[0].split()[-1]
    found = getattr(kind, name, None)
    try:
        signature(found).bind(None, None)  # type: ignore[arg-type]  # None raises `TypeError`, too
    except (TypeError, ValueError):
        found = None
    if found is None or iscoroutinefunction(found) != is_async:
        why = f"{kind.__name__} needs the method `{method}`; see docs/features.md"
        raise UnusableClass(f"FEATURES: the {what} {why}")
    if _required_arguments("FEATURES", kind) > 1:
        why = "its constructor may require one argument, ours, or none"
        raise UnusableClass(f"FEATURES: the {what} {kind.__name__} cannot be built: {why}")


def built(setting: str, kind: type[Any], ours: object) -> Any:
    """Return an instance; it gets ours if its constructor requires an argument.

    Raise `UnusableClass` if the constructor fails.
    """
    with building(setting, kind.__name__):
        return kind(ours) if _required_arguments(setting, kind) else kind()


@contextmanager
def building(setting: str, name: str) -> Iterator[None]:
    """Turn an error of the operator's code in this block into `UnusableClass`."""
    try:
        yield
    except UnusableClass:
        raise
    except Exception as error:  # the operator's code may raise anything
        why = f"{type(error).__name__}{_place(error)}"
        raise UnusableClass(f"{setting}: {name} cannot be built ({why})") from error


def _action(returned: object) -> Action | FinishAction:
    """Return an action as it is; raise `UnusableClass` for anything else."""
    match returned:
        case FinishAction(text=str()):
            return returned
        case Action(calls=tuple(calls), text=str()) if 1 <= len(calls) <= _MAX_CALLS:
            are_calls = all(isinstance(each, ToolCall) for each in calls)
            if are_calls and all(isinstance(part, str) for each in calls for part in astuple(each)):
                return returned
    raise UnusableClass("next_action returned no action")


def _report(what: str, error: Exception) -> None:
    is_ours = isinstance(error, UnusableClass)  # the text of any other error may quote a person
    why = str(error) if is_ours else f"{type(error).__name__}{_place(error)}"
    log.error("class failed", what=what, error=why)


def _place(error: Exception) -> str:
    """Return the innermost line that is neither ours nor Python's import, as " at shop.py:12"."""
    theirs = [each for each in extract_tb(error.__traceback__) if not _OURS.match(each.filename)]
    return f" at {Path(theirs[-1].filename).name}:{theirs[-1].lineno}" if theirs else ""
