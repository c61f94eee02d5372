"""`AIContextBehavior`: one kind of memory as a component (Semantic Kernel's ADR 0072).

Works without the agent and without Telegram. A behavior stores nothing about the people it serves:
each call brings the ids. So one object serves many conversations at the same time.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

import structlog

from memory.behaviors.context import CallContext
from memory.behaviors.tool import Tool
from memory.message import Message
from memory.search.message_search import EVERYTHING, SearchFilter
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class Reach:
    """The conversations that an operator names; without `targets` all of them.

    A target is `private` (all private chats), `groups`, the id of a chat with all its topics, or
    `<chat id>:<topic id>`. The id of a private chat is that of its person. `off` names none.
    """

    targets: frozenset[str] = frozenset()

    def covers(self, conversation: Scope) -> bool:
        """Return whether the conversation is one of them."""
        if not self.targets:
            return True
        chat = conversation.chat_id
        kind = "private" if chat > 0 else "groups"
        names = {kind, str(chat), f"{chat}:{conversation.topic_id}"} if chat else set()
        return not self.targets.isdisjoint(names)


EVERYWHERE = Reach()
OFF = "off"  # the target of a behavior that runs only where people turn it on


def reaches_of(entries: Iterable[str]) -> dict[str, Reach]:
    """Return the reach of each name; entries are `<name>` or `<name>@<target>`, and add up."""
    targets: dict[str, set[str]] = {}
    for entry in entries:
        name, _, target = entry.partition("@")
        targets.setdefault(name, set()).add(target)
    return {
        name: EVERYWHERE if "" in named else Reach(frozenset(named))
        for name, named in targets.items()
    }


class AIContextBehavior:
    """Base of all behaviors. Override the hooks that you need; the others are never called.

    `instructions` and `functions` may not change while the process runs. The hooks of all behaviors
    run at the same time, each under a time limit. An error in a hook is logged; other behaviors and
    the person do not notice it.
    """

    name: str = "behavior"
    instructions: str = ""  # part of the constant system message
    functions: Sequence[Tool[Any]] = ()  # part of the model's tools
    reach: Reach = EVERYWHERE  # in other conversations nothing of it is seen or called
    search_heading: str = ""
    leads_with: str = ""  # text below this heading stands first and is never left out
    gives_way: bool = False  # loses a function whose name another one has; else the start fails

    async def on_conversation_created(self, call_context: CallContext) -> None:
        """Prepare for a new conversation, or for one that was cleared, before its first message."""

    async def on_conversation_deleting(self, call_context: CallContext) -> None:
        """Prepare for the erasure of a conversation, which follows."""

    async def on_conversation_checkpoint(self, call_context: CallContext) -> None:
        """Handle the end of a session by `/new`; the conversation goes on."""

    async def on_new_message(self, call_context: CallContext, message: Message) -> None:
        """Handle a message: a person's before the model is asked, an answer after its turn.

        A turn that is repeated after a crash passes its message again, with the same `message_ids`.
        An answer is not passed if the process dies between the commit and this call. A behavior
        that must miss nothing learns from watermarks instead (`LearningBehavior`).
        """

    async def on_model_invoke(
        self,
        call_context: CallContext,  # noqa: ARG002 - a hook's signature
        new_messages: Sequence[Message],  # noqa: ARG002
    ) -> str:
        """Return text for this model call's memory context; it is never stored.

        `new_messages` are the messages of this turn, not the history. "" adds nothing. Text that
        rests on untrusted text must contain `UNTRUSTED_MARK`: then tools ask before they write.
        """
        return ""

    async def on_search(
        self,
        call_context: CallContext,  # noqa: ARG002
        question: str,  # noqa: ARG002
        k: int,  # noqa: ARG002
        max_tokens: int,  # noqa: ARG002
        search_filter: SearchFilter = EVERYTHING,  # noqa: ARG002
    ) -> Mapping[str, str]:
        """Return what else `search_memory` shows, below `search_heading`: lines by their codes.

        Together at most `max_tokens`, about at most `k` messages, the best one first. The codes are
        those of `CallContext.used`. Raise `StoreError`.
        """
        return {}

    async def on_suspend(self, call_context: CallContext) -> None:
        """Save what the next turn needs: any process may run the next one.

        It is called at the end of a turn, also if the turn failed or has to wait for Telegram. A
        turn that lost its lease runs elsewhere, so nothing is called for it here.
        """

    async def on_resume(self, call_context: CallContext) -> None:
        """Load what `on_suspend` saved, before other hooks. Not called if the reply is stored."""


log = structlog.get_logger(__name__)


class FunctionNameClash(Exception):
    """Raised when two behaviors offer functions of the same name."""


class AIContextBehaviorManager:
    """All behaviors of a bot, in the order in which they were registered; those that lead first.

    A hook runs at the same time in all behaviors that override it, each under the time limit. A
    slow or failing one is logged and does not affect the others. Raises `FunctionNameClash`.
    """

    def __init__(self, behaviors: Sequence[AIContextBehavior], time_limit_s: float) -> None:
        behaviors = self.behaviors = tuple(sorted(behaviors, key=lambda each: not each.leads_with))
        self._time_limit_s = time_limit_s
        # The headings of the text that stands first in the memory section.
        self.leading = tuple(each.leads_with for each in behaviors if each.leads_with)
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

    def within(self, conversation: Scope) -> tuple[AIContextBehavior, ...]:
        """Return the behaviors that run in a conversation."""
        return tuple(each for each in self.behaviors if each.reach.covers(conversation))

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        """Return the texts of all behaviors, in the order of their registration."""
        texts = await self._call("on_model_invoke", call_context, new_messages)
        return "\n".join(text for text in texts if text and text.strip())

    async def _call(self, hook: str, call_context: CallContext, *arguments: object) -> list[Any]:
        """Call a hook where it is overridden; return the answers, `None` for a failed call."""
        base = getattr(AIContextBehavior, hook)
        here = self.within(call_context.conversation)
        overriding = [each for each in here if getattr(type(each), hook) is not base]

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

    # The other hooks call the same in all behaviors.
    on_conversation_created = partialmethod(_call, "on_conversation_created")
    on_conversation_deleting = partialmethod(_call, "on_conversation_deleting")
    on_conversation_checkpoint = partialmethod(_call, "on_conversation_checkpoint")
    on_new_message = partialmethod(_call, "on_new_message")
    on_suspend = partialmethod(_call, "on_suspend")
    on_resume = partialmethod(_call, "on_resume")
