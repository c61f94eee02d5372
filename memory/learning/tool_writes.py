"""Carries out the writes that tools requested, once, after the reply.

The commit of a turn leaves them in a field of the conversation. The step that carries them out also
removes the field. If the facts are in another scope, the next step removes it.
"""

from dataclasses import replace

from memory.behaviors.behavior_store import Kept
from memory.erasure.correcting import Correcting
from memory.learning.consent import WithDomain
from memory.learning.progress import Progress, progress_after, progress_of
from memory.learning.waiting_questions import expired, questions, remembered
from memory.scopes.changes import Write
from memory.scopes.entries import Checked, ScopeEntry
from memory.scopes.fact_lists import known_facts, split_by_place
from memory.scopes.field import Field
from memory.scopes.fields import State, ToolWrites, Written
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Source
from memory.scopes.writes import ForgetRecord, Keep, Remember, SetDomain, StillTrue, ToolWrite
from memory.store.store import Store


def without_domain(state: str, _: str) -> str:
    """Return the state unchanged, because it has no domain fields."""
    return state


class ToolWriter:
    """Stores the facts that a tool was asked to keep, and erases those it was asked to forget.

    `with_domain` returns a state, as JSON, with the domain fields that an operator's tool has set.
    """

    def __init__(self, store: Store, scopes: Scopes, with_domain: WithDomain) -> None:
        self._store = store
        self._scopes = scopes
        self._correcting = Correcting(store, scopes)
        self._with_domain = with_domain

    async def carry_out(self, progress: Progress) -> Progress:
        """Carry out the waiting writes of a conversation, oldest turn first; drop old questions.

        A repeat changes nothing. If memory is off, nothing is stored, but facts are erased. Return
        the progress as it is then. Raise `NotWritten` if something was erased meanwhile; the
        remaining writes wait.
        """
        turns = [each.turn for each in progress.here.all(ToolWrites)]
        for turn in sorted(turns, key=int):
            progress = await self._forget(progress, turn)
            progress = await self._remember(progress, turn)
        if old := expired(progress.here, progress.now):
            progress = await self._write(progress, progress.here, Write(removed=old))
        return progress

    async def _forget(self, progress: Progress, turn: str) -> Progress:
        writes = _waiting(progress.here, turn).writes
        wanted = [each for each in writes if isinstance(each, ForgetRecord) and not each.asks_first]
        for write in wanted:
            await self._correcting.delete_fact(progress.conversation, write.record_id)
        if wanted:
            progress, _ = await progress_of(self._store, self._scopes, progress.conversation)
        return progress

    async def _write(self, progress: Progress, to: ScopeMemory, write: Write) -> Progress:
        return await progress_after(self._store, self._scopes, progress, {to: write})

    async def _remember(self, progress: Progress, turn: str) -> Progress:
        # The facts were read first. An erasure that removes a waiting write also refuses this one.
        here, facts = progress.here, progress.facts
        waiting = _waiting(here, turn)
        fields: list[Field] = []
        entries: list[ScopeEntry] = []
        state = here.state
        for write in waiting.writes:
            if here.is_off and not isinstance(write, ForgetRecord):
                continue
            if isinstance(write, Keep):
                fields.append(Kept(write.behavior, write.name, waiting.seq, write.text))
            elif write.asks_first:
                entries += _asked(write, facts, progress.now)
                fields += questions(here, write, waiting.seq, progress.now)
            elif isinstance(write, SetDomain):
                state = self._with_domain(state, write.fields)
            elif isinstance(write, Remember):
                source = Source(here.scope.tag, waiting.seq, here.epoch, write.sender_id)
                entries += remembered(write, source, known_facts(facts, here), progress.now)
        if state != here.state:
            fields.append(State(state))
        done = Write(fields=fields, removed=[waiting.name])
        if facts is here:
            return await self._write(progress, here, replace(done, entries=entries))
        general, topic = split_by_place(entries)
        written = Written(here.scope.tag, turn)
        if facts.get(Written, written.tag) != written:
            new = Write(general, [written], learned_from=here)
            progress = await self._write(progress, facts, new)
        return await self._write(progress, here, replace(done, entries=topic))


def _asked(write: ToolWrite, facts: ScopeMemory, now: float) -> list[ScopeEntry]:
    """Return the entry that says that a person is asked whether a fact still holds."""
    if isinstance(write, StillTrue) and facts.record(write.record_id) is not None:
        return [Checked(write.record_id, now)]
    return []


def _waiting(here: ScopeMemory, turn: str) -> ToolWrites:
    """Return the writes of a turn's tools; none if they were carried out."""
    return here.get(ToolWrites, turn) or ToolWrites(turn, 0, ())
