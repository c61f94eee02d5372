"""Keeps or erases a memory only if the person agrees, with a button, within an hour.

The question waits in a field of the conversation, and the bot sends it. An answer counts once.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import inf
from secrets import token_urlsafe
from time import time
from typing import Literal, get_args

from memory.behaviors.call_context import Asker, may_change
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.correcting import Correcting
from memory.scopes.changes import NotWritten, Write
from memory.scopes.entries import THE_ONE_BEFORE, Ended, Fact, ScopeEntry
from memory.scopes.field import Field
from memory.scopes.fields import QUESTION_WAITS_S, UNASKED, Question, State, ToolWrites
from memory.scopes.provenance import senders_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Source
from memory.scopes.writes import ForgetRecord, Remember, SetDomain, ToolWrite
from memory.store.keys import Scope
from memory.store.store import Store

ConsentAnswer = Literal["kept", "not_kept", "forgotten", "not_forgotten"]
_ANSWERS: Mapping[str, ConsentAnswer] = {
    **{each: each for each in get_args(ConsentAnswer)},
    # An earlier version stored these; they remain for an hour after an update.
    "yes": "kept",
    "no": "not_kept",
}

WithDomain = Callable[[str, str], str]

_CARD_WAITS_S = 86_400
_MAX_CARDS = 20
"""Cards of a conversation that are stored at once; beyond, a learned fact is dropped."""
_TRIES = 20
_PAUSE_S = 0.25


def questions(here: ScopeMemory, write: ToolWrite, seq: int, now: float) -> list[Question]:
    """Return the field in which a write waits for an answer; it rests on the message `seq`.

    A write without a text names a card, which was shown now. The list is empty if the card is gone.
    """
    if not isinstance(write, Remember) or write.text:
        return [Question(write.nonce, seq, now, "", write)]
    card = here.get(Question, write.nonce)
    return [replace(card, answer="")] if card and card.answer == UNASKED else []


def new_cards(entries: Sequence[ScopeEntry], here: ScopeMemory, now: float) -> list[Question]:
    """Return a question for each new fact in `entries`, to be asked with a later answer.

    It expires after a day. A fact that is asked about already gets no second question.
    """
    waiting = [each for each in here.all(Question) if each.answer in ("", UNASKED)]
    asked = {each.write.text for each in waiting if isinstance(each.write, Remember)}
    cards: list[Question] = []
    for fact, following in zip_longest(entries, entries[1:]):
        if not isinstance(fact, Fact) or fact.text in asked:
            continue
        ended = following.fact_id if isinstance(following, Ended) else 0
        source = fact.sources[0]
        write = Remember(fact.text, ended, asks_first=True, sender_id=source.sender_id)
        # A second each keeps them in order.
        asked_at = now + _CARD_WAITS_S - QUESTION_WAITS_S + len(cards)
        cards.append(Question(token_urlsafe(12), source.seq, asked_at, UNASKED, write))
    return cards[: max(0, _MAX_CARDS - len(waiting))]


def expired(here: ScopeMemory, now: float) -> list[str]:
    """Return the names of the questions that nobody answered in time; they are to be removed."""
    return [each.name for each in here.all(Question) if each.expires_at <= now]


def expire_in(here: ScopeMemory, now: float) -> float:
    """Return the seconds until the next question expires; infinity if there is none."""
    return min((each.expires_at - now for each in here.all(Question)), default=inf)


def remembered(write: Remember, source: Source, facts: ScopeMemory, now: float) -> list[ScopeEntry]:
    """Return the entries that store a statement and end the fact that it replaces."""
    entries: list[ScopeEntry] = [Fact(0, write.text, (source,), said_at=now)]
    if write.replaces and facts.record(write.replaces) is not None:
        entries.append(Ended(write.replaces, now, THE_ONE_BEFORE))
    return entries


class Consent:
    """Carries out the answers. `with_domain` returns a state with the domain fields of a tool."""

    def __init__(
        self,
        store: Store,
        scopes: Scopes,
        correcting: Correcting,
        with_domain: WithDomain,
    ) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scopes = scopes
        self._correcting = correcting
        self._with_domain = with_domain

    async def answer(
        self, conversation: Scope, nonce: str, asker: Asker, *, agrees: bool, text: str = ""
    ) -> ConsentAnswer:
        """Carry out the waiting write if `agrees`; a repeat returns the first answer.

        With a `text`, a fact gets these words of the person instead.

        Raise `NotConfirmed` if the question is unknown or expired, if it was asked of another
        person, or if the asker may not change the fact any more.
        """
        answered: ConsentAnswer | None = None

        async def decide(facts: ScopeMemory) -> None:
            # Read the facts first, so that an erasure of the question also refuses this write.
            nonlocal answered
            here = await self._scopes.read(conversation)
            asked = here.get(Question, nonce)
            if asked is not None and asked.answer != UNASKED:
                if text and isinstance(asked.write, Remember):
                    asked = replace(asked, write=replace(asked.write, text=text))
                answered = await self._decide(here, facts, asked, asker, agrees=agrees)

        for _ in range(_TRIES):
            await self._scopes.update(conversation.facts_scope, decide)
            if answered is not None:
                return answered
            if not await self._is_on_its_way(conversation, nonce):
                break
            await asyncio.sleep(_PAUSE_S)
        raise NotConfirmed("unknown")

    async def _decide(
        self, here: ScopeMemory, facts: ScopeMemory, asked: Question, asker: Asker, *, agrees: bool
    ) -> ConsentAnswer:
        write, now = asked.write, time()
        if write.sender_id != asker.sender_id:
            raise NotConfirmed("not_yours")
        if asked.answer:
            return _ANSWERS[asked.answer]
        if asked.expires_at <= now:
            raise NotConfirmed("unknown")
        answer: ConsentAnswer = "forgotten" if isinstance(write, ForgetRecord) else "kept"
        if agrees:
            await _check_owner(facts, write, asker)
        else:
            answer = "not_forgotten" if answer == "forgotten" else "not_kept"
        fields: list[Field] = [asked.answered(answer)]
        if answer == "forgotten" and isinstance(write, ForgetRecord):
            # After a crash before the next step, it is erased once more, which changes nothing.
            await self._correcting.delete_fact(here.scope, write.record_id)
            here = await self._scopes.read(here.scope)
            if here.get(Question, asked.nonce) != asked:
                raise NotWritten("stale")
        elif answer == "kept" and isinstance(write, SetDomain):
            fields.append(State(self._with_domain(here.state, write.fields)))
        elif answer == "kept" and isinstance(write, Remember):
            source = Source(here.scope.tag, asked.seq, here.epoch, asker.sender_id)
            await self._keep(here, facts, remembered(write, source, facts, now), fields)
            return answer
        await self._scopes.write(here, Write(fields=fields))
        return answer

    async def _keep(
        self,
        here: ScopeMemory,
        facts: ScopeMemory,
        entries: Sequence[ScopeEntry],
        answered: Sequence[Field],
    ) -> None:
        """Write a fact, and the field that says that the question is answered."""
        if facts.scope == here.scope:
            await self._scopes.write(here, Write(entries, answered))
            return
        # The field in the scope of facts prevents a second fact after a crash before the next step.
        names = [field.name for field in answered]
        if not facts.fields.keys() & set(names):
            await self._scopes.write(facts, Write(entries, answered, learned_from=here))
        await self._scopes.write(here, Write(fields=answered))
        facts = await self._scopes.read(facts.scope)
        await self._scopes.write(facts, Write(removed=names))

    async def _is_on_its_way(self, conversation: Scope, nonce: str) -> bool:
        """Return whether the question is stored, or still on its way from the turn that asks it."""
        turn = self._keys.scope(conversation).turn
        outbox = await self._client.call("HGET", turn, "outbox") or b""
        here = await self._scopes.read(conversation)
        waiting = (write.nonce for each in here.all(ToolWrites) for write in each.writes)
        is_asked = here.get(Question, nonce) is not None
        return is_asked or nonce.encode() in outbox or nonce in waiting


async def _check_owner(facts: ScopeMemory, write: ToolWrite, asker: Asker) -> None:
    """Raise `NotConfirmed` if the write would end or erase a fact that now is another person's."""
    fact_id = 0
    if isinstance(write, ForgetRecord):
        fact_id = write.record_id
    elif isinstance(write, Remember):
        fact_id = write.replaces
    fact = facts.record(fact_id)
    if isinstance(fact, Fact) and not await may_change(asker, senders_of(facts, fact)):
        raise NotConfirmed("not_yours")
