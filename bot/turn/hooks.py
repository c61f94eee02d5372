"""When in a turn the behaviors are called: resume, created, new message, invoke; later the rest."""

import time
from collections.abc import Sequence

from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.call_context import CallContext, IsAdmin, Person, nobody
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope


class TurnHooks:
    """Calls the behaviors of a bot in the order that ADR 0072 describes."""

    def __init__(self, behaviors: AIContextBehavior) -> None:
        self._behaviors = behaviors

    async def begin(self, call_context: CallContext, history: ChatHistory, words: Message) -> str:
        """Tell of a new message and return what is to be told to the model; raise `StoreError`."""
        await self._behaviors.on_resume(call_context)
        if not history.is_searchable:
            await self._behaviors.on_conversation_created(call_context)
        await self._behaviors.on_new_message(call_context, words)
        return await self._behaviors.on_model_invoke(call_context, [words])

    async def end(
        self, call_context: CallContext, messages: Sequence[Message], *, ends_session: bool
    ) -> None:
        """Tell of what was answered and that the turn is over.

        A command that ends a sitting is a turn without words: it begins and ends here.
        """
        if ends_session:
            await self._behaviors.on_resume(call_context)
        for message in messages:
            if message.role == "assistant":
                await self._behaviors.on_new_message(call_context, message)
        if ends_session:
            await self._behaviors.on_conversation_checkpoint(call_context)
        await self._behaviors.on_suspend(call_context)

    async def deleting(self, call_context: CallContext) -> None:
        """Tell that a conversation is about to be erased."""
        await self._behaviors.on_conversation_deleting(call_context)


def call_context_of(
    asked: IncomingMessage | ButtonPress, conversation: Scope, is_admin: IsAdmin = nobody
) -> CallContext:
    """Return whom a turn or a button is about."""
    sender = asked.sender
    speaker = Person(
        sender.id if sender.is_person else 0,
        sender.first_name,
        sender.last_name,
        sender.language,
    )
    return CallContext(conversation, speaker, time.time(), is_admin)
