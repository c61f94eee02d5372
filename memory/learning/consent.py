"""Keeps or erases a memory only if the person agrees, with a button, within an hour.

The question waits in a field of the conversation, and the bot sends it. An answer counts once.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import time
from typing import Literal, get_args

from memory.behaviors.context import Asker, may_change
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.correcting import Correcting, present_fact
from memory.learning.waiting_questions import remembered
from memory.scopes.changes import NotWritten, Write
from memory.scopes.entries import Checked, Fact, ScopeEntry
from memory.scopes.fact_lists import known_facts, split_by_place
from memory.scopes.field import Field
from memory.scopes.fields import UNASKED, Question, State
from memory.scopes.provenance import senders_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Source
from memory.scopes.writes import ForgetRecord, Remember, SetDomain, StillTrue, ToolWrite
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from memory.store.store import Store

ConsentAnswer = Literal["kept", "not_kept", "forgotten", "not_forgotten", "confirmed"]
_ANSWERS: Mapping[str, ConsentAnswer] = {**{each: each for each in get_args(ConsentAnswer)}}

WithDomain = Callable[[str, str], str]

_TRIES = 20
_PAUSE_S = 0.25


class Consent:
    """Carries out the answers. `with_domain` returns a state with the domain fields of a tool."""

    def __init__(
        self, store: Store, scopes: Scopes, correcting: Correcting, with_domain: WithDomain
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
        person, or if the asker may not change the fact any more; `StoreUnavailable` if the question
        is still on its way.
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
        else:  # its learner has died; another one stores the question soon
            raise StoreUnavailable("the question is not stored yet")
        raise NotConfirmed("unknown")

    async def _decide(
        self, here: ScopeMemory, facts: ScopeMemory, asked: Question, asker: Asker, *, agrees: bool
    ) -> ConsentAnswer:
        write = asked.write
        if write.sender_id != asker.sender_id:
            raise NotConfirmed("not_yours")
        if asked.answer:
            return _ANSWERS[asked.answer]
        if asked.expires_at <= time():
            raise NotConfirmed("unknown")
        answer = _answer_to(write, agrees=agrees)
        if agrees:
            await _check_owner(facts, write, asker)
        fields: list[Field] = [asked.answered(answer)]
        if isinstance(write, StillTrue):
            _check_same(facts, write, answer)
        if answer == "forgotten" and isinstance(write, ForgetRecord | StillTrue):
            # After a crash before the next step, it is erased once more, which changes nothing.
            await self._correcting.delete_facts(here.scope, write.record_ids)
            here = await self._scopes.read(here.scope)
            if here.get(Question, asked.nonce) != asked:
                raise NotWritten("stale")
        elif answer == "kept" and isinstance(write, SetDomain):
            fields.append(State(self._with_domain(here.state, write.fields)))
        elif entries := _agreed(here, facts, asked, answer):
            await self._keep(here, facts, entries, fields)
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
        general, topic = split_by_place(entries)
        names = [field.name for field in answered]
        if not facts.fields.keys() & set(names):
            await self._scopes.write(facts, Write(general, answered, learned_from=here))
        await self._scopes.write(here, Write(topic, answered))
        facts = await self._scopes.read(facts.scope)
        await self._scopes.write(facts, Write(removed=names))

    async def _is_on_its_way(self, conversation: Scope, nonce: str) -> bool:
        """Return whether the question is stored, or still on its way from the turn that asks it."""
        turn = self._keys.scope(conversation).turn
        outbox = await self._client.call("HGET", turn, "outbox") or b""
        here = await self._scopes.read(conversation)
        waiting = (write.nonce for write in here.waiting_writes)
        is_asked = here.get(Question, nonce) is not None
        return is_asked or nonce.encode() in outbox or nonce in waiting


def _answer_to(write: ToolWrite, *, agrees: bool) -> ConsentAnswer:
    match write:
        case StillTrue():
            return "confirmed" if agrees else "forgotten"
        case ForgetRecord():
            return "forgotten" if agrees else "not_forgotten"
    return "kept" if agrees else "not_kept"


def _agreed(
    here: ScopeMemory, facts: ScopeMemory, asked: Question, answer: ConsentAnswer
) -> list[ScopeEntry]:
    """Return the entries that an answer adds to the facts."""
    write = asked.write
    if answer == "confirmed" and isinstance(write, StillTrue):
        return [Checked(write.record_id, time(), is_confirmed=True)]
    if answer == "kept" and isinstance(write, Remember):
        source = Source(here.scope.tag, asked.seq, here.epoch, write.sender_id)
        return remembered(write, source, known_facts(facts, here), time())
    return []


def _check_same(facts: ScopeMemory, write: StillTrue, answer: ConsentAnswer) -> None:
    """Raise `NotConfirmed` if the fact has other words now, or is gone and was to be confirmed."""
    present = present_fact(facts, write.record_id)
    has_changed = present is not None and present.id != write.record_id
    if has_changed or (present is None and answer == "confirmed"):
        raise NotConfirmed("unknown")


async def _check_owner(facts: ScopeMemory, write: ToolWrite, asker: Asker) -> None:
    """Raise `NotConfirmed` if the write would end or erase a fact that now is another person's."""
    fact_ids: tuple[int, ...] = ()
    if isinstance(write, ForgetRecord | StillTrue):
        fact_ids = write.record_ids
    elif isinstance(write, Remember):
        fact_ids = (write.replaces,)
    for fact_id in fact_ids:
        fact = facts.record(fact_id)
        if isinstance(fact, Fact) and not await may_change(asker, senders_of(facts, fact)):
            raise NotConfirmed("not_yours")
