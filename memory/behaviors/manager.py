"""`AIContextBehaviorManager`: many behaviors as one.

Each hook runs side by side in all of them, each under the time limit; a failing or slow one is
logged and does not reach the others.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import structlog

from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.call_context import CallContext
from memory.behaviors.tool import Tool
from memory.message import Message

log = structlog.get_logger(__name__)
T = TypeVar("T")


class FunctionNameClash(Exception):  # noqa: N818 - says when
    """Raised when two behaviors offer a function of one name."""


class AIContextBehaviorManager(AIContextBehavior):
    """All behaviors of a bot, in the order in which they were registered."""

    name = "all"

    def __init__(self, behaviors: Sequence[AIContextBehavior], time_limit_s: float) -> None:
        self.behaviors = tuple(behaviors)
        self._time_limit_s = time_limit_s
        self.instructions = "\n\n".join(filter(None, (each.instructions for each in behaviors)))
        self.functions: tuple[Tool[Any], ...] = tuple(
            function for each in behaviors for function in each.functions
        )
        names = Counter(function.name for function in self.functions)
        if clashing := [name for name, count in names.items() if count > 1]:
            raise FunctionNameClash(", ".join(clashing))

    async def on_conversation_created(self, call_context: CallContext) -> None:
        """Tell all behaviors."""
        await self._each(lambda each: each.on_conversation_created(call_context), "created")

    async def on_conversation_deleting(self, call_context: CallContext) -> None:
        """Tell all behaviors."""
        await self._each(lambda each: each.on_conversation_deleting(call_context), "deleting")

    async def on_conversation_checkpoint(self, call_context: CallContext) -> None:
        """Tell all behaviors."""
        await self._each(lambda each: each.on_conversation_checkpoint(call_context), "checkpoint")

    async def on_new_message(self, call_context: CallContext, message: Message) -> None:
        """Tell all behaviors."""
        await self._each(lambda each: each.on_new_message(call_context, message), "new message")

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        """Return what the behaviors have to say, in the order of their registration."""
        told = await self._each(
            lambda each: each.on_model_invoke(call_context, new_messages), "invoke"
        )
        return "\n".join(text for text in told if text and text.strip())

    async def on_suspend(self, call_context: CallContext) -> None:
        """Tell all behaviors."""
        await self._each(lambda each: each.on_suspend(call_context), "suspend")

    async def on_resume(self, call_context: CallContext) -> None:
        """Tell all behaviors."""
        await self._each(lambda each: each.on_resume(call_context), "resume")

    async def _each(
        self, call: Callable[[AIContextBehavior], Awaitable[T]], hook: str
    ) -> list[T | None]:
        """Return what each behavior answered in time, `None` for the others."""
        return await asyncio.gather(*(self._guarded(each, call, hook) for each in self.behaviors))

    async def _guarded(
        self,
        behavior: AIContextBehavior,
        call: Callable[[AIContextBehavior], Awaitable[T]],
        hook: str,
    ) -> T | None:
        try:
            async with asyncio.timeout(self._time_limit_s):
                return await call(behavior)
        except TimeoutError:
            log.warning("behavior too slow", behavior=behavior.name, hook=hook)
        except Exception:
            log.exception("behavior failed", behavior=behavior.name, hook=hook)
        return None
