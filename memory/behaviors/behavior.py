"""`AIContextBehavior`: one kind of memory as a component (Semantic Kernel's ADR 0072).

Usable without the agent and without Telegram. A behavior keeps nothing about whom it serves: ids
come with every call, so one object serves any number of conversations side by side.
"""

from collections.abc import Sequence
from typing import Any

from memory.behaviors.call_context import CallContext
from memory.behaviors.tool import Tool
from memory.message import Message


class AIContextBehavior:
    """Base of all behaviors: a hook that is not overridden does nothing.

    `instructions` go into the constant system message and `functions` among the model's tools, so
    neither may change while the process runs. Hooks run side by side with those of other behaviors
    and under a time limit; what one raises is logged and does not reach the others or the person.
    """

    name: str = "behavior"
    instructions: str = ""
    functions: Sequence[Tool[Any]] = ()

    async def on_conversation_created(self, call_context: CallContext) -> None:
        """Hear of a conversation before its first message: at first, and again after a clear."""

    async def on_conversation_deleting(self, call_context: CallContext) -> None:
        """Hear that a conversation is about to be erased; afterwards nothing of it is left."""

    async def on_conversation_checkpoint(self, call_context: CallContext) -> None:
        """Hear that a sitting was ended by `/new`; the conversation goes on."""

    async def on_new_message(self, call_context: CallContext, message: Message) -> None:
        """Hear a message of any participant, once, before the model is asked or after it answered.

        A turn that is repeated after a crash tells its message again, with the same `message_ids`;
        an answer is not told when the process dies between its commit and this call. What must not
        be missed is learned from watermarks (`memory.learning`).
        """

    async def on_model_invoke(
        self,
        call_context: CallContext,  # noqa: ARG002 - a hook's signature
        new_messages: Sequence[Message],  # noqa: ARG002
    ) -> str:
        """Return what the model is to be told in this call beside the dialogue; never stored.

        `new_messages` is what has just been said, not the history. "" adds nothing. What holds
        untrusted text bears `wording.FOREIGN_MARK`: then tools ask before they write.
        """
        return ""

    async def on_suspend(self, call_context: CallContext) -> None:
        """Save what must survive: any process may take the next turn."""

    async def on_resume(self, call_context: CallContext) -> None:
        """Load what `on_suspend` saved, before anything else of a turn."""
