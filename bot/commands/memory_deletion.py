"""Deletes single memories that a list shows, and says whose words each rests on."""

from collections.abc import Awaitable, Callable
from secrets import token_hex

import structlog

from bot.commands.paged_list import ListChange
from memory.behaviors.call_context import facts_scope
from memory.documents.library import Library
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.correcting import Correcting
from memory.erasure.forgetting import Forgetting
from memory.scopes.entries import Fact
from memory.scopes.provenance import senders_of
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_RECALL_AGAIN = "k"
"""The kind of code that names messages, "k12,13", which a deleted fact rested on."""
_MAX_SEQS = 3
"""Messages that a button can name within Telegram's 64 bytes."""
_MAX_ID = 2**63 - 1
"""The largest id that Redis accepts, of a message or a record."""


class MemoryDeletion:
    """Deletes what `MemoryEntries` lists; a code is the letter of a kind and an id."""

    def __init__(
        self,
        correcting: Correcting,
        forgetting: Forgetting,
        library: Library,
        scopes: Scopes,
    ) -> None:
        self._correcting = correcting
        self._forgetting = forgetting
        self._library = library
        self._scopes = scopes
        self._by_kind: dict[str, Callable[[Scope, str], Awaitable[ListChange]]] = {
            "x": self._delete_state,
            "f": self._delete_fact,
            "s": self._delete_synopsis,
            "d": self._delete_document,
            "r": self._delete_message,
            _RECALL_AGAIN: self._recall_again,
        }

    async def senders(self, conversation: Scope, code: str) -> set[int]:
        """Return who said what a memory rests on; empty if it rests on everybody's words.

        Raise `NotConfirmed` for a code that the bot never made.
        """
        kind, id_ = code[:1], code[1:]
        if kind not in self._by_kind:
            raise NotConfirmed("unknown")
        if kind == "d":
            listed = await self._library.listed(conversation)
            return {document.sender_id for document in listed if document.key == id_}
        if kind == "x":
            return set()
        ids = _ids(id_)
        if kind == _RECALL_AGAIN:
            return await self._correcting.senders(conversation, ids)
        facts = await self._scopes.read(facts_scope(conversation))
        fact = facts.record(ids[0]) if kind == "f" else None
        return senders_of(facts, fact) if isinstance(fact, Fact) else set()

    async def delete(self, conversation: Scope, code: str) -> ListChange:
        """Delete a memory whose code `senders` has accepted, and say so."""
        change = await self._by_kind[code[0]](conversation, code[1:])
        log.info("memory corrected", kind=code[0])
        return change

    async def _delete_state(self, conversation: Scope, _: str) -> ListChange:
        await self._correcting.delete_state(conversation)
        return ListChange("memory.state_deleted")

    async def _delete_fact(self, conversation: Scope, id_: str) -> ListChange:
        seqs = await self._correcting.delete_fact(conversation, int(id_))
        if not seqs:
            return ListChange("lists.deleted")
        code = _RECALL_AGAIN + ",".join(map(str, seqs[:_MAX_SEQS]))
        return ListChange("memory.fact_deleted", {"buttons.recall_again": code})

    async def _delete_synopsis(self, conversation: Scope, id_: str) -> ListChange:
        await self._correcting.delete_synopsis(conversation, int(id_))
        return ListChange("lists.deleted")

    async def _delete_document(self, conversation: Scope, key: str) -> ListChange:
        await self._library.remove(conversation, key)
        return ListChange("lists.deleted")

    async def _delete_message(self, conversation: Scope, id_: str) -> ListChange:
        await self._forgetting.erase_messages(conversation, {int(id_)}, token_hex(8))
        return ListChange("lists.deleted")

    async def _recall_again(self, conversation: Scope, ids: str) -> ListChange:
        await self._correcting.recall_again(conversation, _ids(ids))
        return ListChange("memory.recalled_again")


def _ids(text: str) -> list[int]:
    """Return the ids in a code; raise `NotConfirmed` for what is no id."""
    try:
        ids = [int(id_) for id_ in text.split(",")]
    except ValueError:
        raise NotConfirmed("unknown") from None
    if not all(0 < id_ <= _MAX_ID for id_ in ids):
        raise NotConfirmed("unknown")
    return ids
