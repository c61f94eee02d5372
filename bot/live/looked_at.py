"""One conversation with its words, as long as its people let the operator look."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from bot.commands.memory_entries import MemoryEntries
from bot.commands.sentences import Sentences
from bot.commands.used_memories import UsedMemories
from memory.limits.stats import count_conversation
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_MAX_MESSAGES = 20
_LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message, and for an answer the memories that it used, one line each."""

    message: Message
    memories: Sequence[str]


@dataclass(frozen=True, slots=True)
class SeenConversation:
    """The newest messages of a conversation, oldest first; `until` is in Unix seconds."""

    until: float
    messages: Sequence[SeenMessage]


class LookReader:
    """Reads conversations from the store; nothing of them is kept here."""

    def __init__(self, memory: Memory, sentences: Sentences) -> None:
        self.look = memory.look
        self._histories = memory.histories
        self._sentences = sentences
        count = partial(count_conversation, memory.client, memory.keys)
        entries = MemoryEntries(memory.histories, count, sentences, _MAX_MESSAGES)
        self._used = UsedMemories(memory.histories, entries, sentences)

    async def read(self, conversation: Scope) -> SeenConversation | None:
        """Return the newest messages; None if that is not allowed, or no longer."""
        if not await self.look.until(conversation):
            return None
        history = await ChatHistory.read(self._histories, conversation)
        messages = [
            SeenMessage(message, await self._memories(conversation, message))
            for message in history.messages[-_MAX_MESSAGES:]
        ]
        # Once more, because the people may have ended it while we read.
        until = await self.look.until(conversation)
        log.info("operator looked", conversation=conversation.tag, shown=bool(until))
        return SeenConversation(until, messages) if until else None

    async def _memories(self, conversation: Scope, message: Message) -> list[str]:
        if message.role != "assistant" or not message.used:
            return []
        used = await self._used.read(_LANGUAGE, conversation, message.seq)
        lines = []
        for number, each in enumerate(used, 1):
            values = {"number": number, **each.entry.values}
            parts = self._sentences.say(_LANGUAGE, each.entry.key, **values)
            lines.append(" ".join(part.text for part in parts))
        return lines
