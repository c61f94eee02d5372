"""Carries out the writes that tools requested, once, after the reply.

The commit of a turn leaves them in a field of the conversation. The step that carries them out also
removes the field. If the facts are in another scope, the next step removes it.
"""

from dataclasses import replace

from memory.behaviors.behavior_store import Kept
from memory.erasure.correcting import Correcting
from memory.learning.consent import WithDomain, remembered, waiting
from memory.learning.progress import Progress, progress_after, progress_of
from memory.scopes.changes import NotWritten, Write
from memory.scopes.entries import Checked, ScopeEntry
from memory.scopes.fact_lists import split_by_place
from memory.scopes.fields import Field, State, ToolWrites, WaitingWrite, Written
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.writes import ForgetRecord, Keep, Remember, SetDomain, StillTrue
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
        asked = progress.here.all(WaitingWrite)
        if old := [each.name for each in asked if each.expires_at <= progress.now]:
            progress = await self._write(progress, progress.here, Write(removed=old))
        return progress

    async def _forget(self, progress: Progress, turn: str) -> Progress:
        writes = _writes_of(progress.here, turn).writes
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
        requested = _writes_of(here, turn)
        fields: list[Field] = []
        state = here.state
        writes = [w for w in requested.writes if isinstance(w, ForgetRecord) or not here.is_off]
        entries: list[ScopeEntry] = [
            Checked(each.record_id, progress.now)  # the person was asked
            for each in writes
            if isinstance(each, StillTrue) and facts.record(each.record_id) is not None
        ]
        for write in writes:
            if isinstance(write, Keep):
                fields.append(Kept(write.behavior, write.name, requested.seq, write.text))
            elif write.asks_first:
                fields += waiting(here, write, requested.seq, progress.now)
            elif isinstance(write, SetDomain):
                state = self._with_domain(state, write.fields)
            elif isinstance(write, Remember):
                entries += remembered(write, requested.seq, here, facts, progress.now)
        if state != here.state:
            fields.append(State(state))
        done = Write(fields=fields, removed=[requested.name])
        if facts is here:
            return await self._write(progress, here, replace(done, entries=entries))
        general, topic = split_by_place(entries)
        written = Written(here.scope.tag, turn)
        if facts.get(Written, written.tag) != written:
            new = Write(general, [written], learned_from=here)
            progress = await self._write(progress, facts, new)
            if _writes_of(here, turn) != requested:
                raise NotWritten("answered")  # a person was faster than the learner
        return await self._write(progress, here, replace(done, entries=topic))


def _writes_of(here: ScopeMemory, turn: str) -> ToolWrites:
    """Return the writes of a turn's tools; none if they were carried out."""
    return here.get(ToolWrites, turn) or ToolWrites(turn, 0, ())
