"""What is kept only if a person agrees by a button: it waits an hour in a field of its own.

The reply that asks is sent by the bot; here is what waits, and what pressing does, once.
"""

import asyncio
from dataclasses import dataclass, replace
from math import inf
from time import time

import orjson

from memory.keys import Conversation
from memory.notebook.notebook import Notebook
from memory.notebook.notebooks import Notebooks, NotWritten, Writing
from memory.notebook.records import THE_ONE_BEFORE, Ended, Entry, Fact, Source
from memory.notebook.writes import Remember
from memory.occasion import facts_scope
from memory.protocol.erasure import NotConfirmed
from memory.protocol.store import Store

PREFIX = "p:"
"""Of the fields in which it waits, by nonce."""

_WAITS_S = 3_600
_TRIES = 20
_PAUSE_S = 0.25


@dataclass(frozen=True, slots=True)
class Question:
    """A statement about which somebody is asked; once answered, its words are gone.

    `seq` is the message that it rests on, `asked_at` in Unix seconds, `answer` "yes", "no" or still
    empty.
    """

    seq: int
    asked_at: float
    answer: str
    text: str = ""
    replaces: int = 0
    sender_id: int = 0

    @classmethod
    def of(cls, stored: str) -> "Question":
        """Read the stored form."""
        seq, asked_at, answer, words = stored.split("|", 3)
        text, replaces, sender_id = orjson.loads(words)
        return cls(int(seq), float(asked_at), answer, text, replaces, sender_id)

    @property
    def stored(self) -> str:
        """Return the stored form; it begins with the sequence of the message."""
        words = orjson.dumps([self.text, self.replaces, self.sender_id]).decode()
        return f"{self.seq}|{self.asked_at:.0f}|{self.answer}|{words}"

    def answered(self, answer: str) -> "Question":
        """Return what stays of it, so that a repeat is answered alike."""
        return replace(self, answer=answer, text="", replaces=0)


def question_field(write: Remember, seq: int, now: float) -> tuple[str, tuple[str, str]]:
    """Return the field in which a statement waits, what it must hold and what it shall hold."""
    question = Question(seq, now, "", write.text, write.replaces, write.sender_id)
    return PREFIX + write.nonce, ("", question.stored)


def expired(here: Notebook, now: float) -> dict[str, tuple[str, str]]:
    """Return the fields that have waited long enough, to be removed."""
    return {
        name: (stored, "")
        for name, stored in here.fields.items()
        if name.startswith(PREFIX) and Question.of(stored).asked_at + _WAITS_S <= now
    }


def expire_in(here: Notebook, now: float) -> float:
    """Return in how many seconds something will have waited long enough; infinity for never."""
    waiting = (stored for name, stored in here.fields.items() if name.startswith(PREFIX))
    return min((Question.of(stored).asked_at + _WAITS_S - now for stored in waiting), default=inf)


def remembered(write: Remember, source: Source, facts: Notebook, now: float) -> list[Entry]:
    """Return the entries that keep a statement and end the fact it replaces."""
    entries: list[Entry] = [Fact(0, write.text, (source,), said_at=now)]
    if write.replaces and facts.record(write.replaces) is not None:
        entries.append(Ended(write.replaces, now, THE_ONE_BEFORE))
    return entries


class Consent:
    """Hears the answers."""

    def __init__(self, store: Store, notebooks: Notebooks) -> None:
        self._client = store.client
        self._keys = store.keys
        self._notebooks = notebooks

    async def answer(
        self, conversation: Conversation, nonce: str, presser: int, *, keep: bool
    ) -> bool:
        """Keep a statement, or do not; return what was decided the first time.

        Raise `NotConfirmed` for what is not asked any more, or was asked of somebody else.
        """
        name = PREFIX + nonce
        for _ in range(_TRIES):
            # The facts first: whatever takes back the question refuses writing under them.
            facts = await self._notebooks.read(facts_scope(conversation))
            here = await self._notebooks.read(conversation)
            if name in here.fields:
                try:
                    return await self._decide(here, facts, name, presser, keep=keep)
                except NotWritten:
                    continue
            if not await self._is_on_its_way(here, nonce):
                break
            await asyncio.sleep(_PAUSE_S)
        raise NotConfirmed("unknown")

    async def _decide(
        self, here: Notebook, facts: Notebook, name: str, presser: int, *, keep: bool
    ) -> bool:
        question, now = Question.of(here.fields[name]), time()
        if question.sender_id != presser:
            raise NotConfirmed("not_yours")
        if question.answer:
            return question.answer == "yes"
        if question.asked_at + _WAITS_S <= now:
            raise NotConfirmed("unknown")
        answered = question.answered("yes" if keep else "no")
        change = {name: (question.stored, answered.stored)}
        source = Source(here.scope.tag, question.seq, here.epoch, question.sender_id)
        write = Remember(question.text, question.replaces)
        entries = remembered(write, source, facts, now) if keep else []
        if entries and facts.scope != here.scope:
            # A crash before the next step must not keep it twice.
            if name not in facts.fields:
                mark = {name: ("", answered.stored)}
                await self._notebooks.write(facts, Writing(entries, mark, here))
            await self._notebooks.write(here, Writing((), change))
            facts = await self._notebooks.read(facts.scope)
            unmark = {name: (facts.fields.get(name, ""), "")}
            await self._notebooks.write(facts, Writing((), unmark))
            return keep
        await self._notebooks.write(here, Writing(entries, change))
        return keep

    async def _is_on_its_way(self, here: Notebook, nonce: str) -> bool:
        """Say whether the reply that asks is still being closed, or waits to be learned from."""
        turn = self._keys.conversation(here.scope).turn
        outbox = await self._client.call("HGET", turn, "outbox") or b""
        waits = (stored for name, stored in here.fields.items() if name.startswith("t:"))
        return nonce.encode() in outbox or any(nonce in stored for stored in waits)
