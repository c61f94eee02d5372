"""Writes what tools wanted written, once, after the reply.

The commit of a turn leaves it in a field of the conversation. The step that writes it also removes
the field. If the facts are in another scope, the next step removes it.
"""

from dataclasses import replace

from memory.erasure.correcting import Correcting
from memory.erasure.pause import MemorySwitch
from memory.learning.consent import WithDomain, expire_in, expired, question, remembered
from memory.learning.progress import Progress
from memory.scopes.changes import Write
from memory.scopes.entries import ScopeEntry
from memory.scopes.field import Field
from memory.scopes.fields import Kept, State, ToolWrites, Written
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Source
from memory.scopes.writes import ForgetRecord, Keep, Remember, SetDomain


def without_domain(state: str, _: str) -> str:
    """Return the state as it is: it has no domain fields."""
    return state


class ToolWriter:
    """Writes facts that a tool was asked to keep, and erases those it was asked to forget.

    `with_domain` returns a state, as JSON, with the domain fields that an operator's tool has set.
    """

    def __init__(
        self,
        scopes: Scopes,
        correcting: Correcting,
        switch: MemorySwitch,
        with_domain: WithDomain,
    ) -> None:
        self._scopes = scopes
        self._correcting = correcting
        self._switch = switch
        self._with_domain = with_domain

    async def carry_out(self, progress: Progress, *, is_off: bool) -> float:
        """Do what waits in a conversation, oldest turn first; a repeat changes nothing.

        Where memory `is_off` nothing is kept. Return in how many seconds something will have to be
        dropped that nobody agreed to; infinity for never. Raise `NotWritten` when something was
        erased meanwhile; the rest waits.
        """
        turns = [each.turn for each in progress.here.all(ToolWrites)]
        # Also if it was turned off since, and before what waits was read.
        is_off = is_off or (bool(turns) and await self._switch.is_off(progress.conversation))
        for turn in sorted(turns, key=int):
            await self._forget(progress, turn)
            await self._remember(progress, turn, is_off=is_off)
        here = await self._scopes.read(progress.conversation)
        if old := expired(here, progress.now):
            await self._scopes.write(here, Write(removed=old))
            here = await self._scopes.read(progress.conversation)
        return expire_in(here, progress.now)

    async def _forget(self, progress: Progress, turn: str) -> None:
        for write in _waiting(progress.here, turn).writes:
            if isinstance(write, ForgetRecord) and not write.asks_first:
                await self._correcting.delete_fact(progress.conversation, write.record_id)

    async def _remember(self, progress: Progress, turn: str, *, is_off: bool) -> None:
        # The facts first: whatever takes back what waits here refuses writing under them.
        facts = await self._scopes.read(progress.conversation.facts_scope)
        here = await self._scopes.read(progress.conversation)
        waiting = _waiting(here, turn)
        fields: list[Field] = []
        entries: list[ScopeEntry] = []
        state = here.state
        for write in waiting.writes:
            if is_off and not isinstance(write, ForgetRecord):
                continue
            if isinstance(write, Keep):
                fields.append(Kept(write.behavior, write.name, waiting.seq, write.text))
            elif write.asks_first:
                fields.append(question(write, waiting.seq, progress.now))
            elif isinstance(write, SetDomain):
                state = self._with_domain(state, write.fields)
            elif isinstance(write, Remember):
                source = Source(here.scope.tag, waiting.seq, here.epoch, write.sender_id)
                entries += remembered(write, source, facts, progress.now)
        if state != here.state:
            fields.append(State(state))
        done = Write(fields=fields, removed=[waiting.name])
        if facts.scope == here.scope:
            await self._scopes.write(here, replace(done, entries=entries))
            return
        written = Written(here.scope.tag, turn)
        if facts.get(Written, written.tag) != written:
            await self._scopes.write(facts, Write(entries, [written], learned_from=here))
        await self._scopes.write(here, done)


def _waiting(here: ScopeMemory, turn: str) -> ToolWrites:
    """Return what the tools of a turn want written, nothing if that is done."""
    return here.get(ToolWrites, turn) or ToolWrites(turn, 0, ())
