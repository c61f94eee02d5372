"""If an answer says that it saved something, and learning kept nothing of it, a message says so."""

import time
from dataclasses import dataclass

import structlog

from bot.commands.sentences import Sentences
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import FloodWait, TelegramError
from memory.behaviors.learning_mode import mode_in
from memory.behaviors.user_facts import UserFacts
from memory.learning.progress import learner_in
from memory.memory import Memory
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.fact_lists import known_facts
from memory.scopes.fields import Field
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import stays
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

NOTHING_KEPT = "claims.nothing_kept"
"""The key of what is said if learning has kept nothing of what the answer says it saved."""
_MAX_CLAIM_AGE_S = 86_400
"""Nobody remembers what an older answer has promised."""


@dataclass(frozen=True, slots=True)
class ClaimsChecked(Field):
    """The newest answer whose claim to have saved something was compared with what was kept."""

    PREFIX = "claims_checked"
    seq: int

    without = stays


class FalseClaims:
    """Says that nothing was kept, although an answer says that something was."""

    def __init__(self, memory: Memory, chat: Chat, sentences: Sentences) -> None:
        self._scopes = memory.scopes
        self._chat = chat
        self._sentences = sentences

    async def correct(self, conversation: Scope) -> bool:
        """Compare the claims of new answers with what was learned from their exchanges.

        At most one message is sent, about the newest one. It is noted before, so that nobody says
        it twice. Return false if the chat has no permit to spare now. Raise `StoreError`.
        """
        here = await self._scopes.current(conversation)
        answer = self._false_claim(here, await self._scopes.current(conversation.facts_scope))
        if answer is None:
            return True
        chat_id = conversation.chat_id
        try:
            async for _ in self._chat.waits(chat_id):
                return False
        except FloodWait:
            return False

        is_first = False

        async def note(scope: ScopeMemory) -> Write | None:
            nonlocal is_first
            is_first = answer.seq > _checked(scope)
            return Write(fields=[ClaimsChecked(answer.seq)]) if is_first else None

        await self._scopes.update(conversation, note)
        if is_first:
            to = Destination(chat_id, conversation.topic_id, answer.message_ids[-1])
            try:
                for part in self._sentences.say(answer.claim, NOTHING_KEPT):
                    await self._chat.send(to, part)
            except TelegramError as error:
                log.info("claim not corrected", reason=type(error).__name__)
        return True

    def _false_claim(self, here: ScopeMemory, facts: ScopeMemory) -> Message | None:
        """Return the newest answer with a false claim that learning has already read."""
        learner = learner_in(facts.scope, UserFacts.name, here.scope, here.generation)
        checked, learned = _checked(here), facts.watermark(learner)
        if checked >= learned or mode_in(facts) != "auto":
            return None
        messages = here.messages.messages
        new = [
            each
            for each in messages
            if checked < each.seq <= learned
            and each.claim
            and each.message_ids
            and time.time() - each.sent_at < _MAX_CLAIM_AGE_S
        ]
        if not new:
            return None
        tag = here.scope.tag
        kept = {
            source.seq
            for fact in known_facts(facts, here)
            for source in fact.sources
            if source.tag == tag
        }
        exchanges = {each.exchange for each in messages if each.seq in kept}
        return next((each for each in reversed(new) if each.exchange not in exchanges), None)


def _checked(here: ScopeMemory) -> int:
    found = here.get(ClaimsChecked)
    return found.seq if found else 0
