"""When in a turn the behaviors are called: resume, created, new message, invoke; later the rest."""

import time
from collections.abc import Sequence

from bot.telegram.inbound import Inbound, Pressed
from memory.behaviors.behavior import AIContextBehavior
from memory.history import ChatHistory
from memory.keys import Conversation
from memory.messages import Message
from memory.occasion import Occasion, Person
from memory.ownership import IsAdmin, nobody


class TurnHooks:
    """Calls the behaviors of a bot in the order that ADR 0072 describes."""

    def __init__(self, behaviors: AIContextBehavior) -> None:
        self._behaviors = behaviors

    async def begin(self, occasion: Occasion, history: ChatHistory, words: Message) -> str:
        """Tell of a new message and return what is to be told to the model; raise `StoreError`."""
        await self._behaviors.on_resume(occasion)
        if not history.is_searchable:
            await self._behaviors.on_conversation_created(occasion)
        await self._behaviors.on_new_message(occasion, words)
        return await self._behaviors.on_model_invoke(occasion, [words])

    async def end(
        self, occasion: Occasion, messages: Sequence[Message], *, ends_sitting: bool
    ) -> None:
        """Tell of what was answered and that the turn is over.

        A command that ends a sitting is a turn without words: it begins and ends here.
        """
        if ends_sitting:
            await self._behaviors.on_resume(occasion)
        for message in messages:
            if message.role == "assistant":
                await self._behaviors.on_new_message(occasion, message)
        if ends_sitting:
            await self._behaviors.on_conversation_checkpoint(occasion)
        await self._behaviors.on_suspend(occasion)

    async def deleting(self, occasion: Occasion) -> None:
        """Tell that a conversation is about to be erased."""
        await self._behaviors.on_conversation_deleting(occasion)


def occasion_of(
    asked: Inbound | Pressed, conversation: Conversation, is_admin: IsAdmin = nobody
) -> Occasion:
    """Return whom a turn or a button is about."""
    sender = asked.sender
    speaker = Person(
        sender.id if sender.is_person else 0,
        sender.first_name,
        sender.last_name,
        sender.language,
    )
    return Occasion(conversation, speaker, time.time(), is_admin)
