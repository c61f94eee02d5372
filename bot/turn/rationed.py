"""Rations around answering: who writes too much gets one notice instead of answers for a while.

Only what asks a model is counted: commands always work. Admins are exempt. What was not answered is
not remembered either, and the notice says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from bot.commands.sentences import Sentences
from bot.telegram.inbound import Inbound
from bot.turn.answer import RunAgent
from bot.turn.outbox import Outbox
from bot.turn.runner import Answerer
from memory.context import AgentContext
from memory.history import ChatHistory
from memory.keys import Conversation
from memory.messages import Message
from memory.protocol.rations import Ration, Rations, Verdict
from memory.steps import FinishAction
from memory.store_errors import StoreError

log = structlog.get_logger(__name__)

_FREE = ("command", "stranger")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What everybody but the `exempt` may have, and where it is counted."""

    rations: Rations
    each: Ration
    exempt: frozenset[int]

    @property
    def is_unbounded(self) -> bool:
        """Whether nothing is to be counted."""
        return not (self.each.turns_per_minute or self.each.tokens_per_day)

    async def admit(self, person: int, turn: str) -> Verdict:
        """Count a turn and say whether it may be answered; raise `StoreError`."""
        if self.is_unbounded or person in self.exempt:
            return Verdict.ADMITTED
        return await self.rations.admit(person, turn, self.each)

    async def spend(self, person: int, turn: str, tokens: int) -> None:
        """Note what a turn has taken; a store that is away costs the count, not the reply."""
        if not self.each.tokens_per_day or person in self.exempt:
            return
        try:
            await self.rations.spend(person, turn, tokens)
        except StoreError as error:
            log.warning("tokens not counted", reason=type(error).__name__)


class RationedAnswerer:
    """Answers while there is something left of the person's ration."""

    def __init__(self, answerer: Answerer, allowance: Allowance, sentences: Sentences) -> None:
        self._answerer = answerer
        self._allowance = allowance
        self._sentences = sentences

    async def answer(self, mail: Sequence[Inbound], words: Message, history: ChatHistory) -> Outbox:
        """Return the reply, or a notice: once with a sentence, then without any."""
        last = mail[-1]
        if not _asks_a_model(last, words):
            return await self._answerer.answer(mail, words, history)
        turn = _turn(history.conversation, words)
        verdict = await self._allowance.admit(words.sender_id, turn)
        if verdict is Verdict.ADMITTED:
            return await self._answerer.answer(mail, words, history)
        log.warning("ration used up", user=words.sender_id, verdict=verdict.value)
        language = last.sender.language
        told = verdict is Verdict.TOLD
        parts = () if told else self._sentences.say(language, f"ration.{verdict.value}")
        reply_to = last.message_id if last.is_group else 0
        return Outbox(last.chat_id, last.topic_id, reply_to, parts, unread=True)

    def apologise(self, mail: Sequence[Inbound], reference: str) -> Outbox:
        """Return the reply to messages that could not be answered."""
        return self._answerer.apologise(mail, reference)


def counted(run: RunAgent, allowance: Allowance) -> RunAgent:
    """Return `run` with what each run takes noted, whatever its end is."""

    async def run_and_count(context: AgentContext) -> FinishAction:
        try:
            return await run(context)
        finally:
            turn = _turn(context.conversation, context.words)
            await allowance.spend(context.words.sender_id, turn, context.tokens_used)

    return run_and_count


def _asks_a_model(last: Inbound, words: Message) -> bool:
    return last.kind == "document" or (last.kind not in _FREE and bool(words.text))


def _turn(conversation: Conversation, words: Message) -> str:
    """Name a turn as it is named whenever it is begun again: by the first of its messages."""
    return f"{conversation.tag}/{words.message_ids[0]}"
