"""Deletes single memories that a person points at.

The messages that a deleted fact rests on stay in the history, but recall does not find them any
more. Otherwise the fact would come back with them.
"""

from collections.abc import Sequence

from memory.scopes.changes import Revision, Write
from memory.scopes.entries import Fact, Hidden, Synopsis
from memory.scopes.fields import STATE_LEARNER, State, StateUntrusted, Watermark
from memory.scopes.log import seq_of
from memory.scopes.provenance import chain_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope
from memory.store.store import Store

_EXCHANGE = 2
"""Messages of an exchange."""


class Correcting:
    """Deletes facts, synopses and the running state of one conversation."""

    def __init__(self, store: Store, scopes: Scopes) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scopes = scopes

    async def delete_fact(self, conversation: Scope, fact_id: int) -> tuple[int, ...]:
        """Erase a fact and those it had replaced; return the messages here that it rested on.

        Recall does not find these messages and their answers any more. Empty without such a fact.
        """
        scope = conversation.facts_scope
        seqs: tuple[int, ...] = ()

        async def decide(facts: ScopeMemory) -> Revision | None:
            nonlocal seqs
            fact = facts.record(fact_id)
            if not isinstance(fact, Fact):
                return None
            seqs = tuple(s.seq for s in fact.sources if s.tag == conversation.tag)
            # Hide first, so that after a crash the fact is still there to be deleted.
            await self._hide(conversation, seqs, hidden=True)
            return Revision(records=chain_of(facts, fact))

        erased = await self._scopes.update(scope, decide)
        if erased.records and scope != conversation:  # an answer that uses the fact begins again
            await self._scopes.erase(conversation)
        return seqs

    async def delete_synopsis(self, conversation: Scope, synopsis_id: int) -> None:
        """Erase a synopsis; the messages that it sums up stay."""

        async def decide(here: ScopeMemory) -> Revision | None:
            is_there = isinstance(here.record(synopsis_id), Synopsis)
            return Revision(records=[synopsis_id]) if is_there else None

        await self._scopes.update(conversation, decide)

    async def delete_state(self, conversation: Scope) -> None:
        """Erase the running state; it is learned again from later messages only."""

        async def decide(_: ScopeMemory) -> Revision:
            meta = self._keys.scope(conversation).meta
            newest = int(await self._client.call("HGET", meta, "next_seq") or 0)
            removed = [State.PREFIX, StateUntrusted.PREFIX]
            return Revision(fields=[Watermark(STATE_LEARNER, newest)], removed=removed)

        await self._scopes.update(conversation, decide)

    async def senders(self, conversation: Scope, seqs: Sequence[int]) -> set[int]:
        """Return the ids of the senders of these messages; messages that are gone have none."""
        log = self._keys.scope(conversation).log
        stored = await self._client.pipeline([("XRANGE", log, seq, seq) for seq in seqs])
        return {int(fields[b"i"]) for entries in stored for _, fields in entries}

    async def recall_again(self, conversation: Scope, seqs: Sequence[int]) -> None:
        """Let recall find messages again that a deleted fact rested on."""
        await self._hide(conversation, seqs, hidden=False)

    async def _hide(self, conversation: Scope, seqs: Sequence[int], *, hidden: bool) -> None:
        """Hide messages and their answers from recall, or show them again."""
        log = self._keys.scope(conversation).log
        stored = await self._client.pipeline(
            [("XRANGE", log, f"{seq}-0", "+", "COUNT", _EXCHANGE) for seq in seqs]
        )
        exchanges = [
            seq_of(entry)
            for entries in stored
            for entry, fields in entries
            if fields[b"x"] == entries[0][1][b"x"]
        ]

        async def decide(here: ScopeMemory) -> Write | None:
            entries = [Hidden(seq, hidden) for seq in exchanges if (seq in here.hidden) != hidden]
            return Write(entries) if entries else None

        if exchanges:
            await self._scopes.update(conversation, decide)
