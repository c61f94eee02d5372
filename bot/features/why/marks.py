"""Shows that something was learned: the reaction ✍ on the message that it came from.

It is set after the fact was written. The conversation's `meta` keeps up to which fact this was
done, so a process that dies in between does not lose it. A repeated reaction changes nothing.

Before a fact is deleted or gets other words, and before its message is erased, the mark goes. So a
repeat after a crash still knows which message it was. A mark stays if another fact came from there.
"""

import time
from collections.abc import Collection, Iterable

import structlog

from bot.telegram.chat import Chat
from bot.telegram.errors import FloodWait, OutcomeUnknown, TelegramError, Unreachable
from memory.behaviors.context import CallContext
from memory.erasure.correcting import present_fact
from memory.memory import Memory
from memory.scopes.changes import facts_behind
from memory.scopes.entries import Fact
from memory.scopes.fact_lists import known_facts, place_of, with_shown_id
from memory.scopes.log import message_of
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_LEARNED = "✍"
_MAX_AGE_S = 172_800
_MAX_KNOWN = 4_096

Marked = tuple[Scope, int]  # conversation and sequence of a message that has the mark or gets it


class LearnedMarks:
    """Marks messages, in the process that learns from them."""

    def __init__(self, memory: Memory, chat: Chat) -> None:
        self._memory = memory
        self._chat = chat
        self._done: dict[Scope, int] = {}

    async def show(self, conversation: Scope) -> bool:
        """Mark the messages of new facts, and unmark those of facts that these have replaced.

        Return false if the chat has no permit to spare now. Raise `StoreError`.
        """
        scopes = self._memory.scopes
        personal = await scopes.current(conversation.facts_scope)
        facts = personal.facts
        newest = facts[-1].id if facts else 0
        if newest <= self._done.get(conversation, 0):
            return True
        client, meta = self._memory.client, self._memory.keys.scope(conversation).meta
        stored, quiet = await client.call("HMGET", meta, "marked", "quiet")
        known = known_facts(personal, await scopes.current(conversation))
        done, carrying = int(stored or 0), _marked(fact for fact in known if fact.is_current)
        new = _marked(fact for fact in facts if fact.id > done and fact.is_current)
        here = {each for each in new if each[0] == conversation}
        left = _marked(fact for fact in facts if fact.replaced_by > done) - carrying
        is_quiet = (quiet or b"").endswith(b"|1")
        if here and not is_quiet and not await self._react(here, _LEARNED):
            return False
        if not await self._react(left, ""):
            return False
        if newest > done:
            await client.call("HSET", meta, "marked", newest)
        if len(self._done) >= _MAX_KNOWN:
            self._done.clear()
        self._done[conversation] = newest
        return True

    async def leave_fact(self, conversation: Scope, fact_id: int) -> None:
        """Unmark the messages of a fact that is about to go or to get other words."""
        scope, stored_id = place_of(conversation, fact_id)
        facts = await self._memory.scopes.read(scope)
        fact = present_fact(facts, stored_id)
        if fact is not None:
            going = [with_shown_id(scope, each) for each in facts_behind(facts, fact)]
            gone = {each.id for each in going}
            known = await self._known(conversation)
            others = (each for each in known if each.is_current and each.id not in gone)
            await self._react(_marked(going) - _marked(others), "")

    async def leave_messages(self, conversation: Scope, seqs: Collection[int]) -> None:
        """Unmark messages that are about to be erased."""
        facts = await self._known(conversation)
        await self._react(_marked(facts) & {(conversation, seq) for seq in seqs}, "")

    async def leave_all(self, call_context: CallContext) -> None:
        """Unmark all messages, because the conversation is about to be erased."""
        conversation = call_context.conversation
        facts = await self._known(conversation)
        await self._react({each for each in _marked(facts) if each[0] == conversation}, "")

    async def _known(self, conversation: Scope) -> list[Fact]:
        scopes = self._memory.scopes
        personal = await scopes.read(conversation.facts_scope)
        return known_facts(personal, await scopes.read(conversation))

    async def _react(self, marked: Collection[Marked], emoji: str) -> bool:
        """React to the fresh ones of these messages; return false if one has to wait."""
        for conversation, seq in sorted(marked):
            name = self._memory.keys.scope(conversation).log
            found = await self._memory.client.call("XRANGE", name, seq, seq)
            message = message_of(*found[0]) if found else None
            is_fresh = message is not None and time.time() - message.sent_at < _MAX_AGE_S
            if message is None or not message.ids_in_chat or not is_fresh:
                continue
            try:
                if not await self._chat.react(conversation.chat_id, message.ids_in_chat[-1], emoji):
                    return False
            except (FloodWait, OutcomeUnknown, Unreachable):
                return False
            except TelegramError as error:  # the chat allows no such reaction, or it is gone
                log.info("message not marked", reason=type(error).__name__)
        return True


def _marked(facts: Iterable[Fact]) -> set[Marked]:
    """Return the messages whose mark shows these facts: the first source of each.

    A fact with a person's own wording has none. Facts that are too old for a mark are left out.
    """
    fresh = (fact for fact in facts if time.time() - fact.said_at < _MAX_AGE_S)
    sources = (source for fact in fresh if not fact.replaced for source in fact.sources[:1])
    return {(Scope(source.tag), source.seq) for source in sources}
