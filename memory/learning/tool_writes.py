"""Does what tools wanted written, after the reply that went with it, once.

The commit of a turn leaves it in the conversation's notebook as a field of its own, which goes in
the same step as the writing, or in the next one where the facts are another scope's.
"""

from memory.learning.ledger import Ledger
from memory.notebook.notebook import Notebook
from memory.notebook.notebooks import Notebooks, Writing
from memory.notebook.records import Ended, Entry, Fact, Source
from memory.notebook.writes import ForgetRecord, Remember, ToolWrite, from_json
from memory.occasion import facts_scope

_PREFIX = "t:"


class ToolWriter:
    """Writes facts that a tool was asked to keep, and erases those it was asked to forget."""

    def __init__(self, notebooks: Notebooks) -> None:
        self._notebooks = notebooks

    async def carry_out(self, ledger: Ledger) -> None:
        """Do what waits in a conversation, oldest turn first; a repeat changes nothing.

        Raise `NotWritten` when something was erased meanwhile; the rest waits.
        """
        turns = (name.removeprefix(_PREFIX) for name in ledger.here.fields if _waits(name))
        for turn_id in sorted(turns, key=int):
            await self._forget(ledger, turn_id)
            await self._remember(ledger, turn_id)

    async def _forget(self, ledger: Ledger, turn_id: str) -> None:
        _, writes = _waiting(ledger.here, turn_id)
        facts = await self._notebooks.read(ledger.facts.scope)
        gone = [write.record_id for write in writes if isinstance(write, ForgetRecord)]
        stored = [record_id for record_id in gone if facts.record(record_id) is not None]
        if stored:
            await self._notebooks.erase(facts.scope, records=stored)

    async def _remember(self, ledger: Ledger, turn_id: str) -> None:
        here = await self._notebooks.read(ledger.conversation)
        seq, writes = _waiting(here, turn_id)
        done = {_PREFIX + turn_id: (here.fields.get(_PREFIX + turn_id, ""), "")}
        scope = facts_scope(ledger.conversation)
        facts = here if scope == here.scope else await self._notebooks.read(scope)
        entries: list[Entry] = []
        for write in writes:
            if isinstance(write, Remember) and not write.asks_first:
                source = Source(here.scope.tag, seq, int(ledger.epoch), write.sender_id)
                entries += remembered(write, source, facts, ledger.now)
        if facts is here:
            await self._notebooks.write(here, Writing(entries, done))
            return
        last = f"t@{here.scope.tag}"
        if facts.fields.get(last) != turn_id:
            fields = {last: (facts.fields.get(last, ""), turn_id)}
            learned_from = (here.scope.tag, ledger.epoch)
            await self._notebooks.write(facts, Writing(entries, fields, learned_from))
        await self._notebooks.write(here, Writing((), done))


def remembered(write: Remember, source: Source, facts: Notebook, now: float) -> list[Entry]:
    """Return the entries that keep a statement and end the fact it replaces."""
    entries: list[Entry] = [Fact(0, write.text, (source,), said_at=now)]
    if write.replaces and facts.record(write.replaces) is not None:
        entries.append(Ended(write.replaces, now))
    return entries


def _waits(name: str) -> bool:
    return name.startswith(_PREFIX)


def _waiting(here: Notebook, turn_id: str) -> tuple[int, tuple[ToolWrite, ...]]:
    """Return the sequence of the message that a turn answered, and what its tools want written."""
    seq, _, writes = here.fields.get(_PREFIX + turn_id, "0|").partition("|")
    return int(seq), from_json(writes)
