"""The operator's classes in place of our message selector and of our agent's `next_action`.

They choose; our limits hold whatever they return. If one fails, ours is used for that turn, and the
log names the type and the place of the error, never its text: it may repeat a person's words.
"""

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import Parameter, iscoroutinefunction, signature
from itertools import islice
from pathlib import Path
from traceback import extract_tb
from typing import Any

import structlog

from bot.agent.agent import Agent, FunctionsBasedAgent
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
            _report("MESSAGE_SELECTOR", error)
            return self._ours.select(messages)
        return self._within.select([each for each in messages if each.seq in chosen])


class OwnAgent:
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
                _report("NEXT_ACTION", error)
                self._theirs = None
        return await self._ours.next_action(context)


def selector_of(settings: Settings) -> MessageSelector:
    """Return what selects the window: ours, or the operator's; raise `UnusableClass`."""
    ours = BlockWindowMessageSelector.in_quarters(settings.window_messages, settings.window_tokens)
    kind = selector_class(settings)
    return ours if kind is None else OwnSelector(built("MESSAGE_SELECTOR", kind, ours), ours)


def agents_of(settings: Settings, ours: FunctionsBasedAgent) -> Callable[[], Agent]:
    """Return what gives each turn its agent: ours, or the operator's; raise `UnusableClass`."""
    kind = agent_class(settings)
    if kind is None:
        return lambda: ours
    theirs = built("NEXT_ACTION", kind, ours)
    timeout_s = settings.turn_timeout_s / _TIME_SHARE
    return lambda: OwnAgent(theirs, ours, settings.max_steps, timeout_s)


def selector_class(settings: Settings) -> type[Any] | None:
    """Return the class that `MESSAGE_SELECTOR` names, None for ours; raise `UnusableClass`."""
    if settings.message_selector is None:
        return None
    return _class_with("MESSAGE_SELECTOR", settings.message_selector, "def select(self, messages)")


def agent_class(settings: Settings) -> type[Any] | None:
    """Return the class that `NEXT_ACTION` names, None for ours; raise `UnusableClass`."""
    if settings.next_action is None:
        return None
    return _class_with("NEXT_ACTION", settings.next_action, "async def next_action(self, context)")


def class_at(setting: str, path: str) -> type[Any]:
    """Return the class at `package.module:Class`; raise `UnusableClass`."""
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # a module of the operator may raise anything
        why = f"{path} cannot be imported ({type(error).__name__}{_place(error)})"
        advice = "check the name, and that PYTHONPATH has the folder of its package"
        raise UnusableClass(f"{setting}: {why}; {advice}") from error
    if not isinstance(found, type):
        raise UnusableClass(f"{setting}: {path} is not a class")
    return found


def required_arguments(kind: type[Any]) -> int:
    """Return how many arguments the constructor of a class requires."""
    return sum(
        parameter.default is Parameter.empty
        and parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        for parameter in signature(kind).parameters.values()
    )


def _class_with(setting: str, path: str, method: str) -> type[Any]:
    """Return the class at a path if it has this method and can be built; raise `UnusableClass`."""
    kind = class_at(setting, path)
    is_async, name = method.startswith("async "), method.partition("(")[0].split()[-1]
    found = getattr(kind, name, None)
    try:
        signature(found).bind(None, None)  # type: ignore[arg-type]  # None raises `TypeError`, too
    except (TypeError, ValueError):
        found = None
    if found is None or iscoroutinefunction(found) != is_async:
        raise UnusableClass(f"{setting}: {path} needs the method `{method}`; see docs/behaviors.md")
    if required_arguments(kind) > 1:
        why = "its constructor may require one argument, ours, or none"
        raise UnusableClass(f"{setting}: {path} cannot be built: {why}")
    return kind


def built(setting: str, kind: type[Any], ours: object) -> Any:
    """Return an instance; it gets ours if its constructor requires an argument.

    Raise `UnusableClass` if the constructor fails.
    """
    try:
        return kind(ours) if required_arguments(kind) else kind()
    except Exception as error:  # the operator's code may raise anything
        why = f"{type(error).__name__}{_place(error)}"
        raise UnusableClass(f"{setting}: {kind.__name__} cannot be built ({why})") from error


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


def _report(setting: str, error: Exception) -> None:
    log.error("class failed", setting=setting, error=f"{type(error).__name__}{_place(error)}")


def _place(error: Exception) -> str:
    """Return the file and line where an error was raised, as " at shop.py:12"."""
    frames = extract_tb(error.__traceback__)
    return f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
