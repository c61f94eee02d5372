"""Corrects an answer that claims to have saved something and did not: below it, or later.

`saved.toml` has patterns for the languages of the catalogue; in another one no claim is found.
"""

import time
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
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

_MAX_CLAIM_AGE_S = 86_400  # nobody remembers what an older answer has promised


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, sentences = services.memory, services.sentences
    note = partial(claim_note, memory.scopes, sentences)
    correct = partial(correct_claims, memory.scopes, services.chat, sentences)
    return Feature(name="claims", notes=[note], learned=[correct])


async def claim_note(
    scopes: Scopes, sentences: Sentences, request: Request, context: AgentContext, text: str
) -> Below:
    """Return the correction of a false claim, or the code of one of which only learning can tell.

    With "auto", learning runs after the answer and may well keep what was said. Raise `StoreError`.
    """
    if not claims_to_have_saved(text):
        return Below()
    if not context.uses_memory:
        key = "off.not_saved"
    elif await context.chat_history.is_off():
        key = "claims.off"
    else:
        # A write with a nonce is a card of earlier talk, not a write of this run.
        wanted = (each for each in context.writes if not each.nonce)
        if called(context) or any(not isinstance(each, ForgetRecord) for each in wanted):
            return Below()
        mode = mode_in(await scopes.read(context.conversation.facts_scope))
        if mode == "auto":
            return Below(codes=(f"{CLAIM}{request.language}",))
        key = f"claims.{mode}"
    return Below(correction=sentences.say(request.language, key)[0])


@dataclass(frozen=True, slots=True)
class ClaimsChecked(Field):
    """The newest answer whose claim to have saved something was compared with what was kept."""

    PREFIX = "claims_checked"
    seq: int = 0

    without = never_erased


async def correct_claims(
    scopes: Scopes, chat: Chat, sentences: Sentences, conversation: Scope
) -> bool:
    """Correct a new answer that says that it saved something, if nothing was learned from it.

    At most one message is sent, about the newest one. It is noted before, so that nobody says it
    twice. Return false if the chat has no permit to spare now. Raise `StoreError`.
    """
    here = await scopes.current(conversation)
    answer = _false_claim(here, await scopes.current(conversation.facts_scope))
    if answer is None:
        return True
    try:
        async for _ in chat.waits(conversation.chat_id):
            return False
    except FloodWait:
        return False

    is_first = False

    async def note(scope: ScopeMemory) -> Write | None:
        nonlocal is_first
        is_first = answer.seq > (scope.get(ClaimsChecked) or ClaimsChecked()).seq
        return Write(fields=[ClaimsChecked(answer.seq)]) if is_first else None

    await scopes.update(conversation, note)
    if is_first:
        to = Destination(conversation.chat_id, conversation.topic_id, answer.message_ids[-1])
        try:
            for part in sentences.say(_claimed_in(answer), "claims.nothing_kept"):
                await chat.send(to, part)
        except TelegramError as error:
            log.info("claim not corrected", reason=type(error).__name__)
    return True


def _false_claim(here: ScopeMemory, facts: ScopeMemory) -> Message | None:
    learner = learner_in(facts.scope, UserFacts.name, here)
    checked = (here.get(ClaimsChecked) or ClaimsChecked()).seq
    learned = facts.watermark(learner)
    if checked >= learned or mode_in(facts) != "auto":
        return None
    answers = (each for each in reversed(here.messages.messages) if each.role == "assistant")
    recent = takewhile(lambda each: time.time() - each.sent_at < _MAX_CLAIM_AGE_S, answers)
    since_checked = (each for each in recent if checked < each.seq <= learned)
    new = [each for each in since_checked if each.message_ids and _claimed_in(each)]
    if not new:
        return None
    sources = (source for fact in known_facts(facts, here) for source in fact.sources)
    kept = {*here.seqs_of(sources)}
    exchanges = {each.exchange for each in here.messages.messages if each.seq in kept}
    return next((each for each in new if each.exchange not in exchanges), None)


def _claimed_in(answer: Message) -> str:
    """Return the language of a claim to have saved something; "" if an answer makes none."""
    codes = (code for code in answer.used.split() if code.startswith(CLAIM))
    return next(codes, "").removeprefix(CLAIM)
