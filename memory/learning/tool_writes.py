"""Carries out the writes that tools requested, once, after the reply; some wait for a person.

The commit of a turn leaves them in a field of the conversation. The step that carries them out also
removes the field. If the facts are in another scope, the next step removes it.

A write that a person is asked about first waits in another field of the conversation, which goes
with the message that it rests on. The bot shows the question. An answer counts once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from secrets import token_urlsafe
from time import time

from memory.behaviors.behavior_store import Kept
from memory.behaviors.context import Asker, may_change
from memory.behaviors.running_state import RunningState
from memory.erasure.correcting import Correcting, present_fact
from memory.erasure.questions import NotConfirmed
from memory.learning.progress import Progress, progress_after, progress_of
from memory.scopes.changes import NotWritten, Write, senders_of
from memory.scopes.entries import THE_ONE_BEFORE, Checked, Ended, Fact, ScopeEntry
from memory.scopes.fact_lists import known_facts, split_by_place
from memory.scopes.fields import UNASKED, Field, State, ToolWrites, WaitingWrite, Written
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Source
from memory.scopes.writes import ForgetRecord, Keep, Remember, SetDomain, StillTrue, ToolWrite
from memory.store.keys import Scope

_ANSWERS: Mapping[type[ToolWrite], tuple[str, str]] = {
    StillTrue: ("confirmed", "forgotten"),
    ForgetRecord: ("forgotten", "not_forgotten"),
}
_OF_FACT = ("changes", "is_pinned", "kind", "from_day", "to_day")
"""What a fact has from the write that keeps it."""
_WAITS_S = 3_600
_CARD_WAITS_S = 86_400
_MAX_CARDS = 20
"""Cards that one conversation stores at once. While so many wait, learned facts are dropped."""


def waiting(here: ScopeMemory, write: ToolWrite, seq: int, now: float) -> list[WaitingWrite]:
    """Return the field that keeps a write until a person answers; it rests on the message `seq`.

    A `Remember` without a text names a card by its nonce: return that card, now marked as asked, or
    nothing if it is gone.
    """
    if isinstance(write, Remember) and not write.text:
        card = here.get(WaitingWrite, write.nonce)
        return [replace(card, answer="")] if card and card.answer == UNASKED else []
    waits_s = _CARD_WAITS_S if isinstance(write, StillTrue) else _WAITS_S
    return [WaitingWrite(write.nonce, seq, now + waits_s, "", write)]


def find_waiting(here: ScopeMemory, nonce: str) -> tuple[WaitingWrite, list[Field]]:
    """Return a write that a person was asked about, and what changes when it is answered.

    If a turn has just asked, that is the field with the writes of its tools, without this one.
    Raise `NotConfirmed` if nothing of this name was asked.
    """
    for turn in here.all(ToolWrites):
        for write in turn.writes:
            if write.nonce == nonce and (found := waiting(here, write, turn.seq, time())):
                # The learner still has to note that the person was asked.
                noted = [replace(write, asks_first=False)] * isinstance(write, StillTrue)
                others = (each for each in turn.writes if each is not write)
                return found[0], [replace(turn, writes=(*others, *noted))]
    asked = here.get(WaitingWrite, nonce)
    if asked is None:
        raise NotConfirmed("unknown")
    # A card that is asked once more may still stand below an older answer.
    return (replace(asked, answer="") if asked.answer == UNASKED else asked), []


def new_cards(entries: Sequence[ScopeEntry], here: ScopeMemory, now: float) -> list[WaitingWrite]:
    """Return a question for each new fact in `entries`, to be asked with a later answer.

    It expires after a day. A fact that is asked about already gets no second question.
    """
    open_now = [each for each in here.all(WaitingWrite) if each.answer in ("", UNASKED)]
    asked = {each.write.text for each in open_now if isinstance(each.write, Remember)}
    cards: list[WaitingWrite] = []
    for fact, following in zip_longest(entries, entries[1:]):
        if not isinstance(fact, Fact) or fact.text in asked:
            continue
        ended = following.fact_id if isinstance(following, Ended) else 0
        source = fact.sources[0]
        of_fact = {name: getattr(fact, name) for name in _OF_FACT}
        write = Remember(fact.text, ended, asks_first=True, sender_id=source.sender_id, **of_fact)
        # One second between two cards keeps them in order.
        expires_at = now + _CARD_WAITS_S + len(cards)
        cards.append(WaitingWrite(token_urlsafe(12), source.seq, expires_at, UNASKED, write))
    return cards[: max(0, _MAX_CARDS - len(open_now))]


def remembered(
    write: Remember, seq: int, here: ScopeMemory, facts: ScopeMemory, now: float
) -> list[ScopeEntry]:
    """Return the entries that store a statement and end the fact that it replaces, by shown ids.

    It rests on the message `seq`. The new fact is pinned if the replaced one is, or if it is a
    lasting wish.
    """
    source = Source(here.scope.tag, seq, here.source_epoch, write.sender_id)
    known = known_facts(facts, here)
    replaced = next((fact for fact in known if fact.id == write.replaces), None)
    new = Fact(0, write.text, (source,), now, **{name: getattr(write, name) for name in _OF_FACT})
    if replaced is None:
        return [new]
    return [new.in_place_of(replaced), Ended(write.replaces, now, THE_ONE_BEFORE)]


class ToolWriter:
    """Stores the facts that a tool was asked to keep, and erases those it was asked to forget.

    `state` keeps the domain fields that an operator's tool has set; without it they are dropped.
    """

    def __init__(self, scopes: Scopes, correcting: Correcting) -> None:
        self._scopes = scopes
        self._correcting = correcting
        self.state: RunningState | None = None

    async def answer(
        self, conversation: Scope, nonce: str, asker: Asker, *, agrees: bool, text: str = ""
    ) -> str:
        """Carry out a waiting write if its person `agrees`; a repeat returns the first answer.

        It is "kept", "not_kept", "forgotten", "not_forgotten" or "confirmed". With a `text`, a fact
        gets these words of the person instead.

        Raise `NotConfirmed` if the question is unknown or expired, if it was asked of another
        person, or if the asker may not change the fact any more.
        """
        answers: list[str] = []

        async def decide(facts: ScopeMemory) -> None:
            # Read the facts first, so that an erasure of the question also refuses this write.
            here = await self._scopes.read(conversation)
            asked, _ = find_waiting(here, nonce)
            if asked.write.sender_id != asker.sender_id:
                raise NotConfirmed("not_yours")
            if asked.answer:
                answers.append(asked.answer)
                return
            if asked.expires_at <= time():
                raise NotConfirmed("unknown")
            if agrees:
                await _check_owner(facts, asked.write, asker)
            if text and isinstance(asked.write, Remember):
                asked = replace(asked, write=replace(asked.write, text=text))
            yes, no = _ANSWERS.get(type(asked.write), ("kept", "not_kept"))
            answer = yes if agrees else no
            await self._carry_out(here, facts, asked, answer)
            answers.append(answer)

        await self._scopes.update(conversation.facts_scope, decide)
        return answers[0]

    async def _carry_out(
        self, here: ScopeMemory, facts: ScopeMemory, asked: WaitingWrite, answer: str
    ) -> None:
        write, answered = asked.write, asked.answered(answer)
        if isinstance(write, StillTrue):
            present = present_fact(facts, write.record_id)
            is_gone = present is None and answer == "confirmed"
            has_other_words = present is not None and present.id != write.record_id
            if is_gone or has_other_words:
                raise NotConfirmed("unknown")
        if answer == "forgotten" and isinstance(write, ForgetRecord | StillTrue):
            # After a crash before the next step, it is erased once more, which changes nothing.
            for fact_id in write.record_ids:
                await self._correcting.delete_fact(here.scope, fact_id)
            here = await self._scopes.read(here.scope)
        entries = _agreed(here, facts, asked, answer)
        is_apart = bool(entries) and facts.scope != here.scope
        general, topic = split_by_place(entries) if is_apart else ([], entries)
        # The field in the scope of facts prevents a second fact after a crash before the next step.
        if is_apart and answered.name not in facts.fields:
            await self._scopes.write(facts, Write(general, [answered], learned_from=here))
        again, left = find_waiting(here, asked.nonce)
        if again.answer:
            raise NotWritten("answered")  # by another press meanwhile
        if answer == "kept" and isinstance(write, SetDomain):
            left.append(State(self._with_domain(here.state, write)))
        await self._scopes.write(here, Write(topic, [answered, *left]))
        if is_apart:
            facts = await self._scopes.read(facts.scope)
            await self._scopes.write(facts, Write(removed=[answered.name]))

    async def carry_out(self, progress: Progress) -> Progress:
        """Carry out the waiting writes of a conversation, oldest turn first; drop old questions.

        A repeat changes nothing. If memory is off, nothing is stored, but facts are erased. Return
        the progress as it is then. Raise `NotWritten` if something was erased meanwhile; the
        remaining writes wait.
        """
        turns = [each.turn for each in progress.here.all(ToolWrites)]
        for turn in sorted(turns, key=int):
            writes = _writes_of(progress.here, turn).writes
            wanted = [w for w in writes if isinstance(w, ForgetRecord) and not w.asks_first]
            for write in wanted:
                await self._correcting.delete_fact(progress.here.scope, write.record_id)
            if wanted:
                again = await progress_of(self._scopes, progress.here.scope)
                progress = replace(again, is_asked_for=progress.is_asked_for)
            progress = await self._remember(progress, turn)
        asked = progress.here.all(WaitingWrite)
        if old := [each.name for each in asked if each.expires_at <= progress.now]:
            new = Write(removed=old)
            progress = await progress_after(self._scopes, progress, {progress.here: new})
        return progress

    async def _remember(self, progress: Progress, turn: str) -> Progress:
        # The facts were read first. An erasure that removes a waiting write also refuses this one.
        here, facts = progress.here, progress.facts
        requested = _writes_of(here, turn)
        fields: list[Field] = []
        state = here.state
        writes = [w for w in requested.writes if isinstance(w, ForgetRecord) or not here.is_off]
        asked = (each.record_id for each in writes if isinstance(each, StillTrue))
        known = (id_ for id_ in asked if facts.record(id_) is not None)
        entries: list[ScopeEntry] = [Checked(id_, progress.now) for id_ in known]
        for write in writes:
            if isinstance(write, Keep):
                fields.append(Kept(write.behavior, write.name, requested.seq, write.text))
            elif write.asks_first:
                fields += waiting(here, write, requested.seq, progress.now)
            elif isinstance(write, SetDomain):
                state = self._with_domain(state, write)
            elif isinstance(write, Remember):
                entries += remembered(write, requested.seq, here, facts, progress.now)
        if state != here.state:
            fields.append(State(state))
        done = Write(fields=fields, removed=[requested.name])
        if facts is here:
            done = replace(done, entries=entries)
            return await progress_after(self._scopes, progress, {here: done})
        general, topic = split_by_place(entries)
        written = Written(here.scope.tag, turn)
        if facts.get(Written, written.tag) != written:
            new = Write(general, [written], learned_from=here)
            progress = await progress_after(self._scopes, progress, {facts: new})
            if _writes_of(here, turn) != requested:
                raise NotWritten("answered")  # a person was faster than the learner
        done = replace(done, entries=topic)
        return await progress_after(self._scopes, progress, {here: done})

    def _with_domain(self, state: str, write: SetDomain) -> str:
        return self.state.with_domain(state, write.fields) if self.state else state


def _agreed(
    here: ScopeMemory, facts: ScopeMemory, asked: WaitingWrite, answer: str
) -> list[ScopeEntry]:
    write = asked.write
    if answer == "confirmed" and isinstance(write, StillTrue):
        return [Checked(write.record_id, time(), is_confirmed=True)]
    if answer == "kept" and isinstance(write, Remember):
        return remembered(write, asked.seq, here, facts, time())
    return []


async def _check_owner(facts: ScopeMemory, write: ToolWrite, asker: Asker) -> None:
    """Raise `NotConfirmed` if the write would end or erase a fact that now is another person's."""
    fact_ids: tuple[int, ...] = (write.replaces,) if isinstance(write, Remember) else ()
    if isinstance(write, ForgetRecord | StillTrue):
        fact_ids = write.record_ids
    for fact_id in fact_ids:
        fact = facts.record(fact_id)
        if isinstance(fact, Fact) and not await may_change(asker, senders_of(facts, fact)):
            raise NotConfirmed("not_yours")


def _writes_of(here: ScopeMemory, turn: str) -> ToolWrites:
    return here.get(ToolWrites, turn) or ToolWrites(turn, 0, ())
