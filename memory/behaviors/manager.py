"""`AIContextBehaviorManager`: many behaviors as one."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import structlog

from memory.behaviors.behavior import EVERYWHERE, AIContextBehavior
from memory.behaviors.context import CallContext
from memory.behaviors.tool import Tool
from memory.message import Message
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


class FunctionNameClash(Exception):
    """Raised when two behaviors offer functions of the same name."""


class AIContextBehaviorManager(AIContextBehavior):
    """All behaviors of a bot, in the order in which they were registered; those that lead first.

    A hook runs at the same time in all behaviors that override it, each under the time limit. A
    slow or failing one is logged and does not affect the others. Raises `FunctionNameClash`.
    """

    name = "all"

    def __init__(self, behaviors: Sequence[AIContextBehavior], time_limit_s: float) -> None:
        behaviors = self.behaviors = tuple(sorted(behaviors, key=lambda each: not each.leads_with))
        self._time_limit_s = time_limit_s
        self.instructions = "\n\n".join(filter(None, (each.instructions for each in behaviors)))
        fixed = [each for each in behaviors if not each.gives_way]
        names = Counter(function.name for each in fixed for function in each.functions)
        if clashing := [name for name, count in names.items() if count > 1]:
            raise FunctionNameClash(f"two behaviors have a tool named {clashing[0]}")
        self.functions: tuple[Tool[Any], ...] = tuple(
            function
            for each in behaviors
            for function in each.functions
            if not (each.gives_way and names[function.name])
        )

    @property
    def leading(self) -> tuple[str, ...]:
        """The headings of the text that stands first in the memory section."""
        return tuple(each.leads_with for each in self.behaviors if each.leads_with)

    @property
    def is_limited(self) -> bool:
        """Whether some behavior does not run everywhere."""
        return any(each.reach != EVERYWHERE for each in self.behaviors)

    def within(self, conversation: Scope) -> "AIContextBehaviorManager":
        """Return a manager of the behaviors that run in a conversation."""
        covering = [each for each in self.behaviors if each.reach.covers(conversation)]
        return AIContextBehaviorManager(covering, self._time_limit_s)

    async def on_conversation_created(self, call_context: CallContext) -> None:
        """Pass the call on."""
        await self._call("on_conversation_created", call_context)

    async def on_conversation_deleting(self, call_context: CallContext) -> None:
        """Pass the call on."""
        await self._call("on_conversation_deleting", call_context)

    async def on_conversation_checkpoint(self, call_context: CallContext) -> None:
        """Pass the call on."""
        await self._call("on_conversation_checkpoint", call_context)

    async def on_new_message(self, call_context: CallContext, message: Message) -> None:
        """Pass the call on."""
        await self._call("on_new_message", call_context, message)

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        """Return the texts of all behaviors, in the order of their registration."""
        texts = await self._call("on_model_invoke", call_context, new_messages)
        return "\n".join(text for text in texts if text and text.strip())

    async def on_suspend(self, call_context: CallContext) -> None:
        """Pass the call on."""
        await self._call("on_suspend", call_context)

    async def on_resume(self, call_context: CallContext) -> None:
        """Pass the call on."""
        await self._call("on_resume", call_context)

    async def _call(self, hook: str, call_context: CallContext, *arguments: object) -> list[Any]:
        """Call a hook where it is overridden; return the answers, `None` for a failed call."""
        base = getattr(AIContextBehavior, hook)
        overriding = [
            each
            for each in self.behaviors
            if getattr(type(each), hook) is not base
            and each.reach.covers(call_context.conversation)
        ]

        async def guarded(behavior: AIContextBehavior) -> Any:
            try:
                async with asyncio.timeout(self._time_limit_s):
                    answer = await getattr(behavior, hook)(call_context, *arguments)
            except TimeoutError:
                log.warning("behavior too slow", behavior=behavior.name, hook=hook)
            except Exception:
                log.exception("behavior failed", behavior=behavior.name, hook=hook)
            else:
                if isinstance(answer, str | None):
                    return answer
                kind = type(answer).__name__
                log.error("behavior failed", behavior=behavior.name, hook=hook, returned=kind)
            return None

        return await asyncio.gather(*map(guarded, overriding))
