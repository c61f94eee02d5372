"""`AIContextBehavior`: one kind of memory as a component (Semantic Kernel's ADR 0072).

Works without the agent and without Telegram. A behavior stores nothing about the people it serves:
each call brings the ids. So one object serves many conversations at the same time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.behaviors.context import CallContext
from memory.behaviors.tool import Tool
from memory.message import Message
from memory.search.message_search import EVERYTHING, SearchFilter
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class Reach:
    """The conversations that an operator names; without `targets` all of them.

    A target is `private` (all private chats), `groups`, the id of a chat with all its topics, or
    `<chat id>:<topic id>`. The id of a private chat is that of its person.
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

    `instructions` become part of the constant system message, and `functions` part of the model's
    tools. Neither may change while the process runs. The hooks of all behaviors run at the same
    time, each under a time limit. An error in a hook is logged; other behaviors and the person do
    not notice it. In conversations that `reach` does not cover nothing of it is seen or called.

    Text below the heading `leads_with` stands first in the memory section and is never left out.
    Two functions of one name prevent the start; a behavior that `gives_way` loses its own instead.
    """

    name: str = "behavior"
    instructions: str = ""
    functions: Sequence[Tool[Any]] = ()
    reach: Reach = EVERYWHERE
    search_heading: str = ""
    leads_with: str = ""
    gives_way: bool = False

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
        """Load what `on_suspend` saved, at the start of a turn and before all other hooks."""
