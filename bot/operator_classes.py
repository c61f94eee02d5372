"""The classes of features in place of our message selector and of our agent's `next_action`.

They choose; our limits hold whatever they return. If one fails, ours is used for that turn, and the
log names the type and the place of the error, never its text: it may repeat a person's words.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from importlib import import_module
from inspect import Parameter, iscoroutinefunction, signature
from itertools import islice
from pathlib import Path
from traceback import extract_tb
from typing import Any

import structlog

from bot.agent.agent import Agent, FunctionsBasedAgent
from bot.feature import Feature, Replacements
from bot.model.model_errors import ModelError
from config.settings import Settings
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, FinishAction, ToolCall
from memory.message import Message
from memory.scopes.selectors import BlockWindowMessageSelector, MessageSelector
from memory.store.errors import LeaseLost, StoreError

log = structlog.get_logger(__name__)

_MAX_CALLS = 64
"""Tool calls of one action; models ask for a few."""
_TIME_SHARE = 2
"""An operator's `next_action` gets this part of the turn's time, so that ours can still answer."""


class UnusableClass(Exception):
    """Raised at the start if a class that the operator names cannot be used; the text says why."""


class _WrongAction(TypeError):
    """Raised if an operator's `next_action` returns something else than an action."""


class OwnSelector:
    """An operator's selector: it gets the messages that ours gets, and may return any of them.

    They are shown in their order, each once, and not more than our limits allow: then the oldest
    exchanges are left out.
    """

    def __init__(self, theirs: MessageSelector, ours: BlockWindowMessageSelector) -> None:
        self._theirs = theirs
        self._ours = ours
        self._within = BlockWindowMessageSelector(ours.max_messages, ours.max_tokens, block=1)

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return what theirs chose, or what ours chooses if theirs fails."""
        try:
            chosen = {each.seq for each in islice(self._theirs.select(messages), len(messages))}
        except Exception as error:  # noqa: BLE001 - the operator's code may raise anything
            _report("selector", error)
            return self._ours.select(messages)
        return self._within.select([each for each in messages if each.seq in chosen])


class OperatorAgent:
    """An operator's agent for one turn; ours decides after `max_steps` steps or a failure.

    Each decision gets `timeout_s`. After an error of the model's server ours decides, too.
    """

    def __init__(
        self, theirs: Agent, ours: FunctionsBasedAgent, max_steps: int, timeout_s: float
    ) -> None:
        self._theirs: Agent | None = theirs
        self._ours = ours
        self._max_steps = max_steps
        self._timeout_s = timeout_s

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        """Return what theirs decides; raise `ModelError`, `LeaseLost` or `StoreError`."""
        if self._theirs is not None and len(context.completed_steps) < self._max_steps:
            try:
                async with asyncio.timeout(self._timeout_s):
                    return _action(await self._theirs.next_action(context))
            except (LeaseLost, StoreError):
                raise
            except ModelError:
                self._theirs = None
                raise
            except Exception as error:  # noqa: BLE001 - the operator's code may raise anything
                _report("agent", error)
                self._theirs = None
        return await self._ours.next_action(context)


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
    timeout_s = settings.turn_timeout_s / _TIME_SHARE
    return lambda: OperatorAgent(theirs, ours, settings.max_steps, timeout_s)


def class_at(setting: str, path: str) -> type[Any]:
    """Return the class at `package.module:Class`; raise `UnusableClass`."""
    found = found_at(setting, path)
    if not isinstance(found, type):
        raise UnusableClass(f"{setting}: {path} is not a class")
    return found


def found_at(setting: str, path: str) -> Any:
    """Return what stands at `package.module:name`; raise `UnusableClass`."""
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as error:  # a module of the operator may raise anything
        why = f"{path} cannot be imported ({type(error).__name__}{_place(error)})"
        advice = "check the name, and that PYTHONPATH has the folder of its package"
        raise UnusableClass(f"{setting}: {why}; {advice}") from error


def required_arguments(kind: type[Any]) -> int:
    """Return how many arguments the constructor of a class requires."""
    return sum(
        parameter.default is Parameter.empty
        and parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        for parameter in signature(kind).parameters.values()
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
    if required_arguments(kind) > 1:
        why = "its constructor may require one argument, ours, or none"
        raise UnusableClass(f"FEATURES: the {what} {kind.__name__} cannot be built: {why}")


def built(setting: str, kind: type[Any], ours: object) -> Any:
    """Return an instance; it gets ours if its constructor requires an argument.

    Raise `UnusableClass` if the constructor fails.
    """
    return built_by(
        setting, kind.__name__, lambda: kind(ours) if required_arguments(kind) else kind()
    )


def built_by(setting: str, name: str, build: Callable[[], Any]) -> Any:
    """Return what the operator's code builds; raise `UnusableClass` if it fails."""
    try:
        return build()
    except UnusableClass:
        raise
    except Exception as error:  # the operator's code may raise anything
        why = f"{type(error).__name__}{_place(error)}"
        raise UnusableClass(f"{setting}: {name} cannot be built ({why})") from error


def _action(returned: object) -> Action | FinishAction:
    """Return an action as it is; raise `_WrongAction` for anything else."""
    match returned:
        case FinishAction(text=str()):
            return returned
        case Action(calls=tuple(calls), text=str()) if 1 <= len(calls) <= _MAX_CALLS:
            if all(map(_is_call, calls)):
                return returned
    raise _WrongAction


def _is_call(call: object) -> bool:
    match call:
        case ToolCall(id=str(), name=str(), arguments=str()):
            return True
    return False


def _report(what: str, error: Exception) -> None:
    log.error("class failed", what=what, error=f"{type(error).__name__}{_place(error)}")


def _place(error: Exception) -> str:
    """Return the file and line where an error was raised, as " at shop.py:12"."""
    frames = extract_tb(error.__traceback__)
    return f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
