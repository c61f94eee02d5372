"""Replaces what a person has edited, or wants answered again, with all that was learned from it.

Two steps: the messages of the conversation change together with the waiting entry that asks for it.
Then the facts about the person go that rest on them, if these have a scope of their own. The new
form of the entry names the messages, so the second step is repeated after a crash.
"""

from collections.abc import Collection
from dataclasses import replace

import orjson

from memory.erasure.forgetting import Forgetting
from memory.message import Message
from memory.scopes.changes import Revision
from memory.scopes.fields import STATE_LEARNER, State, StateUntrusted, Watermark
from memory.scopes.provenance import without
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Erased
from memory.store.keys import Scope

Change = tuple[bytes, bytes]
"""An entry of the mailbox and its new form, as members of the mailbox."""


class Rewriting:
    """Changes stored messages; an open turn of the conversation begins again."""

    def __init__(self, forgetting: Forgetting) -> None:
        self._forgetting = forgetting

    async def take_out(
        self, conversation: Scope, seqs: Collection[int], entry: Change, receipt_id: str = ""
    ) -> None:
        """Erase an exchange because it is answered again.

        Raise `LeaseLost` if the entry is gone, or if a message of the exchange was erased. The
        running state stays if it was not learned from the exchange. A repeat with the same
        `receipt_id` changes nothing, not even the entry.
        """
        erased = Erased(conversation.tag, seqs)

        async def decide(here: ScopeMemory) -> Revision:
            left = without(here, erased)
            if _is_state_from_before(here, min(seqs)):
                stays = {State.PREFIX, StateUntrusted.PREFIX}
                left = replace(left, removed=[name for name in left.removed if name not in stays])
            return replace(left, messages=sorted(seqs), entry=entry)

        await self._forgetting.revise(conversation, decide, receipt_id)

    async def rewrite(
        self, conversation: Scope, message: Message, seqs: Collection[int], entry: Change
    ) -> None:
        """Give a stored message this text, and have its exchange `seqs` learned again.

        Behaviors learn again from the first message whose synopsis goes. Raise `LeaseLost` if the
        entry is gone.
        """
        erased = Erased(conversation.tag, seqs)

        async def decide(here: ScopeMemory) -> Revision:
            left = without(here, erased)
            again = [each for each in here.synopses if each.last_seq >= message.seq]
            records = {*left.records, *(id_ for each in again for id_ in here.entries_of(each))}
            first = min([message.seq, *(each.first_seq for each in again)])
            fields = [*left.fields, *_watermarks_before(here, first)]
            return replace(
                left, records=sorted(records), fields=fields, rewritten=message, entry=entry
            )

        await self._forgetting.learn_soon(conversation)
        await self._forgetting.revise(conversation, decide)

    async def drop_facts(self, conversation: Scope, seqs: Collection[int]) -> None:
        """Erase the facts about the person that rest on these messages; safe to repeat.

        This also refuses a learner that has read the messages and is about to write.
        """
        scope = conversation.facts_scope
        if scope == conversation:
            return
        erased = Erased(conversation.tag, seqs)

        async def decide(facts: ScopeMemory) -> Revision:
            left = without(facts, erased)
            watermarks = _watermarks_before(facts, min(seqs), of=conversation)
            return replace(left, fields=[*left.fields, *watermarks])

        await self._forgetting.revise(scope, decide)


def _is_state_from_before(here: ScopeMemory, first: int) -> bool:
    """Return whether the running state was learned only from messages before `first`.

    Tools set `domain` without learning, so a state that has one may rest on any message.
    """
    has_domain = bool(here.state) and orjson.loads(here.state).get("domain") is not None
    return 0 < here.watermark(STATE_LEARNER) < first and not has_domain


def _watermarks_before(
    scope_memory: ScopeMemory, first: int, of: Scope | None = None
) -> list[Watermark]:
    """Return the watermarks that must move back so that a message is learned again.

    In a person's scope these are the watermarks `of` one conversation.
    """
    return [
        Watermark(each.learner, first - 1)
        for each in scope_memory.all(Watermark)
        if each.seq >= first and (of is None or f"@{of.tag}@" in f"{each.learner}@")
    ]
