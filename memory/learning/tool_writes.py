"""Does what tools wanted written, after the reply that went with it, once.

The commit of a turn leaves it in the conversation's notebook as a field of its own, which goes in
the same step as the writing, or in the next one where the facts are another scope's.
"""

from memory.behaviors.call_context import facts_scope
from memory.erasure.correcting import Correcting
from memory.erasure.pause import MemorySwitch
from memory.learning.consent import WithDomain, expire_in, expired, question_field, remembered
from memory.learning.progress import Ledger
from memory.scopes.changes import Write
from memory.scopes.records import Entry, Source
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.writes import ForgetRecord, Keep, Remember, SetDomain, ToolWrite, from_json

_PREFIX = "t:"


def without_domain(state: str, _: str) -> str:
    """Leave a state as it is: there is none whose domain could be set."""
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

    async def carry_out(self, ledger: Ledger, *, is_off: bool) -> float:
        """Do what waits in a conversation, oldest turn first; a repeat changes nothing.

        Where memory `is_off` nothing is kept. Return in how many seconds something will have to be
        dropped that nobody agreed to; infinity for never. Raise `NotWritten` when something was
        erased meanwhile; the rest waits.
        """
        turns = [name.removeprefix(_PREFIX) for name in ledger.here.fields if _waits(name)]
        # Also when it was turned off since, and before what waits was read.
        is_off = is_off or (bool(turns) and await self._switch.is_off(ledger.conversation))
        for turn_id in sorted(turns, key=int):
            await self._forget(ledger, turn_id)
            await self._remember(ledger, turn_id, is_off=is_off)
        here = await self._scopes.read(ledger.conversation)
        if old := expired(here, ledger.now):
            await self._scopes.write(here, Write((), old))
            here = await self._scopes.read(ledger.conversation)
        return expire_in(here, ledger.now)

    async def _forget(self, ledger: Ledger, turn_id: str) -> None:
        _, writes = _waiting(ledger.here, turn_id)
        for write in writes:
            if isinstance(write, ForgetRecord) and not write.asks_first:
                await self._correcting.delete_fact(ledger.conversation, write.record_id)

    async def _remember(self, ledger: Ledger, turn_id: str, *, is_off: bool) -> None:
        # The facts first: whatever takes back what waits here refuses writing under them.
        facts = await self._scopes.read(facts_scope(ledger.conversation))
        here = await self._scopes.read(ledger.conversation)
        seq, writes = _waiting(here, turn_id)
        done = {_PREFIX + turn_id: (here.fields.get(_PREFIX + turn_id, ""), "")}
        entries: list[Entry] = []
        state = here.state
        for write in writes:
            if is_off and not isinstance(write, ForgetRecord):
                continue
            if isinstance(write, Keep):
                done[write.field] = (here.fields.get(write.field, ""), write.stored(seq))
            elif write.asks_first:
                name, change = question_field(write, seq, ledger.now)
                done[name] = change
            elif isinstance(write, SetDomain):
                state = self._with_domain(state, write.fields)
            elif isinstance(write, Remember):
                source = Source(here.scope.tag, seq, here.epoch, write.sender_id)
                entries += remembered(write, source, facts, ledger.now)
        if state != here.state:
            done["state"] = (here.state, state)
        if facts.scope == here.scope:
            await self._scopes.write(here, Write(entries, done))
            return
        last = f"t@{here.scope.tag}"
        if facts.fields.get(last) != turn_id:
            fields = {last: (facts.fields.get(last, ""), turn_id)}
            await self._scopes.write(facts, Write(entries, fields, here))
        await self._scopes.write(here, Write((), done))


def _waits(name: str) -> bool:
    return name.startswith(_PREFIX)


def _waiting(here: ScopeMemory, turn_id: str) -> tuple[int, tuple[ToolWrite, ...]]:
    """Return the sequence of the message that a turn answered, and what its tools want written."""
    seq, _, writes = here.fields.get(_PREFIX + turn_id, "0|").partition("|")
    return int(seq), from_json(writes)
