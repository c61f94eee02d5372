"""Corrects an answer that says that it saved something, although it did not: below it, or later.

`saved.toml` has patterns for the languages of the catalogue; in another one no claim is found.
"""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import FloodWait, TelegramError
from bot.turn.notes import Below, called, patterns_in, says_any
from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.behaviors.statements import mode_in
from memory.behaviors.user_facts import UserFacts
from memory.learning.progress import learner_in
from memory.memory import Memory
from memory.message import CLAIM, Message
from memory.scopes.changes import Write
from memory.scopes.fact_lists import known_facts
from memory.scopes.fields import Field
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import never_erased
from memory.scopes.writes import ForgetRecord
from memory.store.keys import Scope

claims_to_have_saved = partial(says_any, patterns_in(Path(__file__).with_name("saved.toml")))
"""Whether an answer says that it has saved something of what the person said."""

log = structlog.get_logger(__name__)

NOTHING_KEPT = "claims.nothing_kept"
"""The key of what is said if learning has kept nothing of what the answer says it saved."""
_MAX_CLAIM_AGE_S = 86_400
"""Nobody remembers what an older answer has promised."""


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, sentences = services.memory, services.sentences
    return Feature(
        name="claims",
        notes=[ClaimNote(memory.scopes, sentences).below],
        learned=[FalseClaims(memory, services.chat, sentences).correct],
    )


class ClaimNote:
    """Corrects a false claim below its answer, or notes it for the end of learning."""

    def __init__(self, scopes: Scopes, sentences: Sentences) -> None:
        self._scopes = scopes
        self._sentences = sentences

    async def below(self, request: Request, context: AgentContext, text: str) -> Below:
        """Return the correction, or the code of a claim of which only learning can tell."""
        key = await self.correction(context, text)
        if key == NOTHING_KEPT:
            return Below(codes=(f"{CLAIM}{request.language}",))
        return Below(correction=self._sentences.say(request.language, key)[0]) if key else Below()

    async def correction(self, context: AgentContext, text: str) -> str:
        """Return the key of the sentence that corrects a false claim, "" for none.

        With "auto", learning runs after the answer and may well keep what was said: `NOTHING_KEPT`.
        Raise `StoreError`.
        """
        if not claims_to_have_saved(text):
            return ""
        if not context.uses_memory:
            return "off.not_saved"
        if await context.chat_history.is_off():
            return "claims.off"
        if _may_have_written(context):
            return ""
        mode = mode_in(await self._scopes.read(context.conversation.facts_scope))
        return NOTHING_KEPT if mode == "auto" else f"claims.{mode}"


def _may_have_written(context: AgentContext) -> bool:
    # A write with a nonce is a card of earlier talk, not a write of this run.
    wanted = (each for each in context.writes if not each.nonce)
    return bool(called(context)) or any(not isinstance(each, ForgetRecord) for each in wanted)


@dataclass(frozen=True, slots=True)
class ClaimsChecked(Field):
    """The newest answer whose claim to have saved something was compared with what was kept."""

    PREFIX = "claims_checked"
    seq: int

    without = never_erased


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
