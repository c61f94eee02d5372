"""Rations around answering: who writes too much gets one notice instead of answers for a while.

Only what asks a model is counted: commands always work. Admins are exempt, also when the bot's
budget of the month is used up. What was not answered is not remembered either, and the notice says
so. What models are asked for a turn is billed to the person whose turn it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from bot.commands.sentences import Sentences
from bot.metrics.budget import Budget
from bot.metrics.usage_counter import billed_to
from bot.telegram.updates import IncomingMessage
from bot.turn.outbox import Outbox
from bot.turn.runner import Answerer
from memory.limits.quotas import Quota, Quotas, Verdict
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_FREE = ("command", "stranger")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What everybody but the `exempt` may have, and where it is counted."""

    quotas: Quotas
    each: Quota
    budget: Budget
    exempt: frozenset[int]

    async def admit(self, person: int, turn: str) -> Verdict:
        """Count a turn and say whether it may be answered; raise `StoreError`.

        A person is told once a day that the bot's budget is used up.
        """
        if person in self.exempt:
            return Verdict.ADMITTED
        if await self.budget.is_used_up():
            is_first = await self.quotas.is_first_today(person, turn, Verdict.BUDGET)
            return Verdict.BUDGET if is_first else Verdict.SILENCED
        if not (self.each.turns_per_minute or self.each.tokens_per_day):
            return Verdict.ADMITTED
        return await self.quotas.admit(person, turn, self.each)


class RationedAnswerer:
    """Answers while there is something left of the person's ration."""

    def __init__(self, answerer: Answerer, allowance: Allowance, sentences: Sentences) -> None:
        self._answerer = answerer
        self._allowance = allowance
        self._sentences = sentences

    async def answer(
        self, mail: Sequence[IncomingMessage], words: Message, history: ChatHistory
    ) -> Outbox:
        """Return the reply, or a notice: once with a sentence, then without any."""
        with billed_to(history.conversation, words.sender_id):
            return await self._answer(mail, words, history)

    async def _answer(
        self, mail: Sequence[IncomingMessage], words: Message, history: ChatHistory
    ) -> Outbox:
        last = mail[-1]
        if not _asks_a_model(last, words):
            return await self._answerer.answer(mail, words, history)
        turn = _turn(history.conversation, words)
        verdict = await self._allowance.admit(words.sender_id, turn)
        if verdict is Verdict.ADMITTED:
            return await self._answerer.answer(mail, words, history)
        log.warning("ration used up", user=words.sender_id, verdict=verdict.value)
        language = last.sender.language
        told = verdict is Verdict.SILENCED
        parts = () if told else self._sentences.say(language, f"quota.{verdict.value}")
        reply_to = last.message_id if last.is_group else 0
        return Outbox(last.chat_id, last.topic_id, reply_to, parts, unread=True)

    def apologise(self, mail: Sequence[IncomingMessage], reference: str) -> Outbox:
        """Return the reply to messages that could not be answered."""
        return self._answerer.apologise(mail, reference)


def _asks_a_model(last: IncomingMessage, words: Message) -> bool:
    return last.kind == "document" or (last.kind not in _FREE and bool(words.text))


def _turn(conversation: Scope, words: Message) -> str:
    """Name a turn as it is named whenever it is begun again: by the first of its messages."""
    return f"{conversation.tag}/{words.message_ids[0]}"
