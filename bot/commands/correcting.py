"""What the buttons of a list do to single memories, which they name by codes."""

import re
from secrets import token_hex

import structlog

from bot.commands.bot_command import ShownOnTop
from bot.commands.paged_list import ListChange
from memory.documents import Library
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.scopes.changes import senders_of
from memory.scopes.entries import Fact
from memory.scopes.fact_lists import place_of
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_ID = "[1-9][0-9]{0,17}"  # Redis accepts no much larger one; only a fact of a topic has a negative
_RECALL_AGAIN = "k"  # kind of a code that names messages, "k12,13", which a deleted fact rested on
_CODE = re.compile(rf"x|d.*|f-?{_ID}|[srm]{_ID}|{_RECALL_AGAIN}{_ID}(?:,{_ID})*")
_MAX_SEQS = 3  # messages that a button can name within Telegram's 64 bytes


class MemoryDeletion:
    """Deletes what a list of memories shows; a code is the letter of a kind and an id."""

    def __init__(self, memory: Memory) -> None:
        self._correcting = memory.correcting
        self._forgetting = memory.forgetting
        self._scopes = memory.scopes
        self._library = Library(memory.scopes)

    async def senders(self, conversation: Scope, code: str) -> set[int]:
        """Return who said what a memory rests on; empty if it rests on everybody's words.

        Raise `NotConfirmed` for a code that the bot never made.
        """
        kind, ids = _read(code)
        if kind == "d":
            listed = await self._library.listed(conversation)
            return {document.sender_id for document in listed if document.key == code[1:]}
        if kind in (_RECALL_AGAIN, "m"):
            return await self._correcting.senders(conversation, ids)
        if kind != "f":
            return set()
        scope, stored_id = place_of(conversation, ids[0])
        facts = await self._scopes.read(scope)
        fact = facts.record(stored_id)
        return senders_of(facts, fact) if isinstance(fact, Fact) else set()

    async def delete(self, conversation: Scope, code: str) -> ListChange:
        """Delete a memory and say so; raise `NotConfirmed` as `senders` does."""
        kind, ids = _read(code)
        change = ListChange("lists.deleted")
        match kind:
            case "x":
                await self._correcting.delete_state(conversation)
                change = ListChange("memory.state_deleted")
            case "f":
                seqs = await self._correcting.delete_fact(conversation, ids[0])
                if seqs is None:  # a second tap: the message shows what the first one offers
                    raise ShownOnTop("lists.deleted")
                if seqs:
                    again = _RECALL_AGAIN + ",".join(map(str, seqs[:_MAX_SEQS]))
                    change = ListChange("memory.fact_deleted", {"buttons.recall_again": again})
            case "s":
                await self._correcting.delete_synopsis(conversation, ids[0])
            case "m":  # a message that an answer recalled; it is only taken out of recall
                await self._correcting.hide(conversation, ids)
                again = _RECALL_AGAIN + str(ids[0])
                change = ListChange("why.taken_out", {"buttons.recall_again": again})
            case "d":
                await self._library.remove(conversation, code[1:])
            case "r":
                await self._forgetting.erase_messages(conversation, ids, token_hex(8))
            case _:
                is_kept = await self._correcting.hide(conversation, ids, hidden=False)
                change = ListChange("memory.recalled_again" if is_kept else "why.deleted")
        log.info("memory corrected", kind=kind)
        return change


def fact_id(code: str) -> int:
    """Return the shown id of a fact; raise `NotConfirmed` for the code of anything else."""
    kind, ids = _read(code)
    if kind != "f":
        raise NotConfirmed("unknown")
    return ids[0]


def _read(code: str) -> tuple[str, list[int]]:
    if not _CODE.fullmatch(code):
        raise NotConfirmed("unknown")
    ids = "" if code[0] in "xd" else code[1:]
    return code[0], [int(each) for each in ids.split(",") if each]
