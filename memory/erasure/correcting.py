"""Deletes single memories on a person's word; a message once learned from is not recalled again.

A deleted fact would come back with the message that says so; the message itself stays in the log,
where it belongs to what was said.
"""

from collections.abc import Sequence

from memory.behaviors.call_context import facts_scope
from memory.scopes.log import seq_of
from memory.scopes.provenance import STATE_WATERMARK, chain_of
from memory.scopes.records import Fact, Hidden, Synopsis
from memory.scopes.scope_memory import STATE_UNTRUSTED
from memory.scopes.scopes import NotWritten, Revision, Scopes, Writing
from memory.store.keys import Scope
from memory.store.store import Store

_EXCHANGE = 2
"""Messages of a question and its answer."""


class Correcting:
    """Deletes facts, synopses and the running state of one conversation."""

    def __init__(self, store: Store, scopes: Scopes) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scopes = scopes

    async def delete_fact(self, conversation: Scope, fact_id: int) -> tuple[int, ...]:
        """Erase a fact and what it had replaced; return the messages here that it rested on.

        These, and the answers to them, are not recalled any more. Nothing where there is no fact.
        """
        scope = facts_scope(conversation)
        while True:
            facts = await self._scopes.read(scope)
            fact = facts.record(fact_id)
            if not isinstance(fact, Fact):
                return ()
            seqs = tuple(s.seq for s in fact.sources if s.tag == conversation.tag)
            # First, so that a crash in between leaves the fact to be deleted again.
            await self._hide(conversation, seqs, hidden=True)
            if scope == conversation:
                facts = await self._scopes.read(scope)
            try:
                await self._scopes.revise(facts, Revision(entries=chain_of(facts, fact)))
            except NotWritten:
                continue
            if scope != conversation:  # whoever is answering with it begins again
                await self._scopes.erase(conversation)
            return seqs

    async def delete_synopsis(self, conversation: Scope, synopsis_id: int) -> None:
        """Erase a synopsis; what was said in its time stays."""
        here = await self._scopes.read(conversation)
        if isinstance(here.record(synopsis_id), Synopsis):
            await self._scopes.erase(conversation, records=[synopsis_id])

    async def delete_state(self, conversation: Scope) -> None:
        """Erase the running state; it is learned anew only from what is said from now on."""
        while True:
            here = await self._scopes.read(conversation)
            meta = self._keys.conversation(conversation).meta
            newest = await self._client.call("HGET", meta, "next_seq") or b"0"
            newest_seq = newest.decode()
            fields = {"state": "", STATE_UNTRUSTED: "", STATE_WATERMARK: newest_seq}
            try:
                await self._scopes.revise(here, Revision(fields=fields))
            except NotWritten:
                continue
            return

    async def senders(self, conversation: Scope, seqs: Sequence[int]) -> set[int]:
        """Return who said these messages; nobody for those that are gone."""
        log = self._keys.conversation(conversation).log
        stored = await self._client.pipeline([("XRANGE", log, seq, seq) for seq in seqs])
        return {int(fields[b"i"]) for entries in stored for _, fields in entries}

    async def recall_again(self, conversation: Scope, seqs: Sequence[int]) -> None:
        """Let messages be recalled again that a deleted fact had rested on."""
        await self._hide(conversation, seqs, hidden=False)

    async def _hide(self, conversation: Scope, seqs: Sequence[int], *, hidden: bool) -> None:
        """Hide messages with the answers to them, with which they would be shown, or show them."""
        log = self._keys.conversation(conversation).log
        stored = await self._client.pipeline(
            [("XRANGE", log, f"{seq}-0", "+", "COUNT", _EXCHANGE) for seq in seqs]
        )
        exchanges = [
            seq_of(entry)
            for entries in stored
            for entry, fields in entries
            if fields[b"x"] == entries[0][1][b"x"]
        ]
        while exchanges:
            here = await self._scopes.read(conversation)
            entries = [Hidden(seq, hidden) for seq in exchanges if (seq in here.hidden) != hidden]
            if not entries:
                return
            try:
                await self._scopes.write(here, Writing(entries))
            except NotWritten:
                continue
            return
