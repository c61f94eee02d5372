"""What is kept or erased only if a person agrees by a button: it waits an hour in its own field.

The reply that asks is sent by the bot; here is what waits, and what pressing does, once.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import time
from typing import Literal, get_args

import orjson

from memory.behaviors.call_context import Asker, facts_scope, may_change
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.correcting import Correcting
from memory.scopes.changes import Write
from memory.scopes.provenance import senders_of
from memory.scopes.records import THE_ONE_BEFORE, Ended, Entry, Fact, Source
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.writes import (
    ForgetRecord,
    Remember,
    SetDomain,
    ToolWrite,
    from_json,
    to_json,
)
from memory.store.keys import Scope
from memory.store.store import Store

PREFIX = "p:"
"""Of the fields in which it waits, by nonce."""

Answered = Literal["kept", "not_kept", "forgotten", "not_forgotten"]
_ANSWERS: Mapping[str, Answered] = {
    **{each: each for each in get_args(Answered)},
    # Of an older version, in the hour after an update.
    "yes": "kept",
    "no": "not_kept",
}

WithDomain = Callable[[str, str], str]

_WAITS_S = 3_600
_TRIES = 20
_PAUSE_S = 0.25


@dataclass(frozen=True, slots=True)
class Question:
    """A write about which somebody is asked; once answered, its words are gone.

    `seq` is the message that it rests on, `asked_at` in Unix seconds, `answer` one of `Answered` or
    still empty.
    """

    seq: int
    asked_at: float
    answer: str
    write: ToolWrite

    @classmethod
    def of(cls, stored: str) -> "Question":
        """Read the stored form."""
        seq, asked_at, answer, writes = stored.split("|", 3)
        return cls(int(seq), float(asked_at), answer, _write_of(writes))

    @property
    def stored(self) -> str:
        """Return the stored form; it begins with the sequence of the message."""
        return f"{self.seq}|{self.asked_at:.0f}|{self.answer}|{to_json([self.write]).decode()}"

    def answered(self, answer: str) -> "Question":
        """Return what stays of it, so that a repeat is answered alike."""
        return replace(self, answer=answer, write=ForgetRecord(0, sender_id=self.write.sender_id))


def question_field(write: ToolWrite, seq: int, now: float) -> tuple[str, tuple[str, str]]:
    """Return the field in which a write waits, what it must hold and what it shall hold."""
    question = Question(seq, now, "", replace(write, nonce=""))
    return PREFIX + write.nonce, ("", question.stored)


def expired(here: ScopeMemory, now: float) -> dict[str, tuple[str, str]]:
    """Return the fields that have waited long enough, to be removed."""
    return {
        name: (stored, "")
        for name, stored in here.fields.items()
        if name.startswith(PREFIX) and Question.of(stored).asked_at + _WAITS_S <= now
    }


def expire_in(here: ScopeMemory, now: float) -> float:
    """Return in how many seconds something will have waited long enough; infinity for never."""
    waiting = (stored for name, stored in here.fields.items() if name.startswith(PREFIX))
    return min((Question.of(stored).asked_at + _WAITS_S - now for stored in waiting), default=inf)


def remembered(write: Remember, source: Source, facts: ScopeMemory, now: float) -> list[Entry]:
    """Return the entries that keep a statement and end the fact it replaces."""
    entries: list[Entry] = [Fact(0, write.text, (source,), said_at=now)]
    if write.replaces and facts.record(write.replaces) is not None:
        entries.append(Ended(write.replaces, now, THE_ONE_BEFORE))
    return entries


class Consent:
    """Hears the answers. `with_domain` returns a state with domain fields that a tool has set."""

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
        self, conversation: Scope, nonce: str, asker: Asker, *, agrees: bool
    ) -> Answered:
        """Carry out what waits, or do not; return what was decided the first time.

        Raise `NotConfirmed` for what is not asked any more, was asked of somebody else, or may not
        be changed by whoever was asked any more.
        """
        name = PREFIX + nonce
        answered: Answered | None = None

        async def decide(facts: ScopeMemory) -> None:
            # The facts were read first: whatever takes the question back refuses this write.
            nonlocal answered
            here = await self._scopes.read(conversation)
            if name in here.fields:
                answered = await self._decide(here, facts, name, asker, agrees=agrees)

        for _ in range(_TRIES):
            await self._scopes.update(facts_scope(conversation), decide)
            if answered is not None:
                return answered
            if not await self._is_on_its_way(conversation, nonce):
                break
            await asyncio.sleep(_PAUSE_S)
        raise NotConfirmed("unknown")

    async def _decide(
        self, here: ScopeMemory, facts: ScopeMemory, name: str, asker: Asker, *, agrees: bool
    ) -> Answered:
        question, now = Question.of(here.fields[name]), time()
        write = question.write
        if write.sender_id != asker.sender_id:
            raise NotConfirmed("not_yours")
        if question.answer:
            return _ANSWERS[question.answer]
        if question.asked_at + _WAITS_S <= now:
            raise NotConfirmed("unknown")
        answer: Answered = "forgotten" if isinstance(write, ForgetRecord) else "kept"
        if agrees:
            await _check_owner(facts, write, asker)
        else:
            answer = "not_forgotten" if answer == "forgotten" else "not_kept"
        answered = {name: (here.fields[name], question.answered(answer).stored)}
        if answer == "forgotten" and isinstance(write, ForgetRecord):
            # A crash before the next step has it forgotten once more, which changes nothing.
            await self._correcting.delete_fact(here.scope, write.record_id)
            here = await self._scopes.read(here.scope)
            await self._scopes.write(here, Write((), answered))
        elif answer == "kept" and isinstance(write, SetDomain):
            state = {"state": (here.state, self._with_domain(here.state, write.fields))}
            await self._scopes.write(here, Write((), answered | state))
        elif answer == "kept" and isinstance(write, Remember):
            source = Source(here.scope.tag, question.seq, here.epoch, asker.sender_id)
            entries = remembered(write, source, facts, now)
            await self._keep(here, facts, entries, answered)
        else:
            await self._scopes.write(here, Write((), answered))
        return answer

    async def _keep(
        self,
        here: ScopeMemory,
        facts: ScopeMemory,
        entries: Sequence[Entry],
        answered: Mapping[str, tuple[str, str]],
    ) -> None:
        """Write a fact, and that the question is answered."""
        if facts.scope == here.scope:
            await self._scopes.write(here, Write(entries, answered))
            return
        # A crash before the next step must not keep it twice.
        ((name, (_, stored)),) = answered.items()
        if name not in facts.fields:
            await self._scopes.write(facts, Write(entries, {name: ("", stored)}, here))
        await self._scopes.write(here, Write((), answered))
        facts = await self._scopes.read(facts.scope)
        unmark = {name: (facts.fields.get(name, ""), "")}
        await self._scopes.write(facts, Write((), unmark))

    async def _is_on_its_way(self, conversation: Scope, nonce: str) -> bool:
        """Say whether the reply that asks is still being closed, or waits to be learned from."""
        turn = self._keys.conversation(conversation).turn
        outbox = await self._client.call("HGET", turn, "outbox") or b""
        here = await self._scopes.read(conversation)
        waits = (stored for name, stored in here.fields.items() if name.startswith("t:"))
        is_asked = PREFIX + nonce in here.fields
        return is_asked or nonce.encode() in outbox or any(nonce in stored for stored in waits)


def _write_of(stored: str) -> ToolWrite:
    """Read a write; a question of an older version held text, replaced fact and who was asked."""
    values = orjson.loads(stored)
    if isinstance(values[0], str):
        text, replaces, sender_id = values
        return Remember(text, replaces, sender_id=sender_id)
    (write,) = from_json(stored)
    return write


async def _check_owner(facts: ScopeMemory, write: ToolWrite, asker: Asker) -> None:
    """Raise `NotConfirmed` where it ends or erases what somebody else has said by now."""
    fact_id = 0
    if isinstance(write, ForgetRecord):
        fact_id = write.record_id
    elif isinstance(write, Remember):
        fact_id = write.replaces
    fact = facts.record(fact_id)
    if isinstance(fact, Fact) and not await may_change(asker, senders_of(facts, fact)):
        raise NotConfirmed("not_yours")
