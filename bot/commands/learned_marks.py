"""Shows that something was learned: the reaction ✍ on the message that it came from.

It is set after the fact was written. The conversation's `meta` keeps up to which fact this was
done, so a process that dies in between does not lose it. A repeated reaction changes nothing.
"""

import time
from collections.abc import Collection

import structlog

from bot.telegram.chat import Chat
from bot.telegram.errors import FloodWait, OutcomeUnknown, TelegramError, Unreachable
from memory.memory import Memory
from memory.scopes.message_reading import read_newest
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_LEARNED = "✍"
_MAX_AGE_S = 172_800
_MAX_KNOWN = 4_096


class LearnedMarks:
    """Marks messages, in the process that learns from them."""

    def __init__(self, memory: Memory, chat: Chat) -> None:
        self._memory = memory
        self._chat = chat
        self._done: dict[Scope, int] = {}

    async def show(self, conversation: Scope) -> None:
        """Mark the messages of new facts; raise `StoreError`.

        If the chat has no permit to spare, the next learning tries again.
        """
        facts = (await self._memory.scopes.current(conversation.facts_scope)).facts
        newest = facts[-1].id if facts else 0
        if newest <= self._done.get(conversation, 0):
            return
        client, meta = self._memory.client, self._memory.keys.scope(conversation).meta
        done, quiet = await client.call("HMGET", meta, "marked", "quiet")
        seqs = {
            source.seq
            for fact in facts
            for source in fact.sources[:1]
            if fact.id > int(done or 0) and fact.is_current and source.tag == conversation.tag
        }
        is_quiet = (quiet or b"").endswith(b"|1")
        if seqs and not is_quiet and not await self._react(conversation, seqs, _LEARNED):
            return
        if newest > int(done or 0):
            await client.call("HSET", meta, "marked", newest)
        if len(self._done) >= _MAX_KNOWN:
            self._done.clear()
        self._done[conversation] = newest

    async def remove(self, conversation: Scope, seqs: Collection[int]) -> None:
        """Take the marks away from messages of which the fact is gone; raise `StoreError`."""
        await self._react(conversation, seqs, "")

    async def remove_all(self, conversation: Scope) -> None:
        """Take all marks away, because the conversation is about to be erased."""
        facts = (await self._memory.scopes.read(conversation.facts_scope)).facts
        sources = (source for fact in facts for source in fact.sources)
        seqs = {source.seq for source in sources if source.tag == conversation.tag}
        if seqs:
            await self._react(conversation, seqs, "")

    async def _react(self, conversation: Scope, seqs: Collection[int], emoji: str) -> bool:
        """React to the fresh ones of these messages; return false if one has to wait."""
        for message in await read_newest(self._memory.store, conversation):
            is_fresh = time.time() - message.sent_at < _MAX_AGE_S
            if message.seq not in seqs or not message.message_ids or not is_fresh:
                continue
            try:
                marked = message.message_ids[-1]
                if not await self._chat.react(conversation.chat_id, marked, emoji):
                    return False
            except (FloodWait, OutcomeUnknown, Unreachable):
                return False
            except TelegramError as error:  # the chat allows no such reaction, or it is gone
                log.info("message not marked", reason=type(error).__name__)
        return True
