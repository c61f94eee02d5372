"""Erases with all that was learned from it: a conversation, messages, a person's share of a group.

Messages go first, so that nothing can be learned from them any more. Then everything goes that
rests on them. Every erasure can be repeated safely.
"""

from asyncio import sleep
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from math import inf
from time import time

import orjson

from memory.erasure.questions import NotConfirmed, first_step
from memory.message import Message
from memory.queue.mailbox import Mailbox
from memory.scopes.changes import Receipt, Revision, without
from memory.scopes.entries import Hidden
from memory.scopes.fields import (
    STATE_LEARNER,
    UNASKED,
    State,
    StateUntrusted,
    WaitingWrite,
    Watermark,
)
from memory.scopes.log import message_of, seq_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Erased
from memory.scopes.writes import Remember
from memory.search.words import content_terms, languages_of, words_of
from memory.store.keys import Scope
from memory.store.store import Store, stream_entries
from memory.work.items import WorkItems

_MAX_COMPARED = 1_000_000
"""Characters that are compared, the newest. English takes 0.3 s of CPU, ideographs two seconds."""
Change = tuple[bytes, bytes]
"""An entry of the mailbox and its new form, as members of the mailbox."""


@dataclass(eq=False)
class Forgetting:
    """Carries out erasures; an erased state is learned again from the newest `tail` messages."""

    store: Store
    scopes: Scopes
    mailbox: Mailbox
    tail: int
    # Called before single messages are erased.
    messages_leave: list[Callable[[Scope, Collection[int]], Awaitable[None]]] = field(
        default_factory=list
    )

    async def clear(
        self, conversation: Scope, nonce: str, presser: int, update_id: int, *, as_admin: bool
    ) -> Receipt:
        """Erase a conversation and, in private chats, the facts that rest on it alone.

        Messages up to the confirming update go at once, without the lease. A repeat returns the
        same receipt. `as_admin` lets any administrator of the group confirm. Raise `NotConfirmed`.
        """
        request: dict[str, object] = {"nonce": nonce, "person": str(presser), "by_admin": as_admin}
        request |= {"last_update": str(update_id), "ttl_s": self.store.ttl_s}
        outcome, *counts = await self.store.run("clear", conversation, request)
        if outcome != b"done":
            raise NotConfirmed(outcome.decode())
        await self.scopes.note_clear(conversation)
        receipt = Receipt.of(counts[0])
        if receipt.left:
            await self.mailbox.wake(conversation)
        scope = conversation.facts_scope
        if scope == conversation:
            return receipt
        # Only now, so that a repeat after a crash does not cut what was said since.
        erased = Erased(conversation.tag, epoch=await self.scopes.cut(scope, conversation))
        learned = await self.revise(scope, lambda facts: without(facts, erased), nonce)
        return replace(receipt, records=receipt.records + learned.records)

    async def find_exchange(
        self, conversation: Scope, message_id: int, sent_at: float = 0, *, with_tasks: bool = False
    ) -> list[Message]:
        """Return the message of this Telegram id and time, and its answer; empty without one.

        The time may be off by hours; 0 if it is unknown.
        What a photo shows is stored right before its caption, under the same id; it comes last.
        `with_tasks`: then come the turns of a task that it asked for, which repeat its words.
        """
        log = self.store.keys.scope(conversation).log
        answer: Message | None = None
        found: list[Message] = []
        tasks: list[Message] = []
        async for entry, fields in stream_entries(self.store.client, log, newest_first=True):
            message = message_of(seq_of(entry), fields)
            is_answered = answer is not None and answer.exchange == message.exchange
            if message.shows(message_id, sent_at):
                found.append(message)
                if len(found) == 1 and answer and is_answered:
                    found.append(answer)
            elif with_tasks and message.is_task:  # also before a question that was asked again
                tasks += [message, answer] if answer and is_answered else [message]
            elif found and message.role == "user" and message.exchange != found[0].exchange:
                break
            if message.role == "assistant":  # a question may have several parts before it
                answer = message
        ids = found[0].message_ids if found else ()
        begun = {each.exchange for each in tasks if each.is_task and each.replied_to in ids}
        return [*found, *(each for each in tasks if each.exchange in begun)]

    async def find_repeats(
        self, conversation: Scope, forgotten: Sequence[Message], instead: str = ""
    ) -> set[int]:
        """Return later answers to the sender that may repeat these messages of theirs.

        Such an answer has one of their words that is in no other message of a person, in no earlier
        answer and not in the text `instead`. In a short talk that may be any word, so the person is
        asked.
        """
        question = forgotten[0]
        text = " ".join(each.text for each in forgotten if each.role == "user")
        languages = languages_of(words_of(text), {})
        terms = content_terms(text, languages) - content_terms(instead, languages)
        rare = {each for each in terms if len(each) > (2 if each.isdecimal() else 1)}
        gone = {each.seq for each in forgotten}
        log = self.store.keys.scope(conversation).log
        answers: dict[int, tuple[int, set[str]]] = {}  # by exchange
        read = 0
        async for entry, fields in stream_entries(self.store.client, log, newest_first=True):
            message = message_of(seq_of(entry), fields)
            if message.seq in gone:
                continue
            read += len(message.text)
            if read > _MAX_COMPARED:
                break
            await sleep(0)  # others go on
            found = rare & content_terms(message.text, languages)
            if message.role == "user" or message.seq < question.seq:
                rare -= found
            elif found:
                answers[message.exchange] = message.seq, found
            if message.sender_id not in (0, question.sender_id):
                answers.pop(message.exchange, None)
        return {seq for seq, found in answers.values() if found & rare}

    async def read_cuts(self, conversation: Scope, messages: Sequence[Message]) -> str | None:
        """Return a text that changes when the conversation, or all of a sender's words, are erased.

        Return None if a sender's words are erased already, or are being erased, up to a time after
        one of these messages. Such an erasure first takes what waits, and then what was said: in
        between nothing that was said may become a waiting entry.

        An erasure finds waiting entries by their update. An entry that asks an older question again
        has a newer update, so an erasure may miss it. Therefore this text is compared when the
        entry is made and when it is answered.
        """
        senders = sorted({each.sender_id for each in messages})
        cuts = [f"cut:{sender}" for sender in senders]
        # The turns of tasks repeat what was said before: they go up to when the erasure began.
        kinds = ("forgotten_until", "forgotten_tasks")
        until = [f"{kind}:{sender}" for kind in kinds for sender in senders]
        found = await self.store.read_meta(conversation, *(*until, "cut_update", "cut_at", *cuts))
        forgotten = {name: float(at or 0) for name, at in zip(until, found, strict=False)}
        for each in messages:
            for kind in kinds if each.is_task else kinds[:1]:
                if each.sent_at <= forgotten[f"{kind}:{each.sender_id}"]:
                    return None
        return ",".join(each.decode() for each in found[len(until) :] if each)

    async def erase_messages(
        self,
        conversation: Scope,
        seqs: Collection[int],
        receipt_id: str,
        find: Callable[[], Awaitable[set[int]]] | None = None,
    ) -> Receipt:
        """Erase messages of a conversation and all that was learned from them.

        Also erase those that `find` returns; it is called again if a turn came between. A repeat
        returns the same receipt. `receipt_id` may be the nonce of the question that names `seqs`.
        """
        leaving = {*seqs, *(await find() if find else ())}
        for leave in self.messages_leave:  # once, and not in the step, which may be repeated
            await leave(conversation, leaving)
        erased = Erased(conversation.tag, seqs)

        async def decide(here: ScopeMemory) -> Revision:
            nonlocal erased
            said = await self._newest(conversation)
            gone = {*seqs, *await find()} if find else seqs
            erased = Erased(conversation.tag, gone, generation=here.generation)
            return replace(without(here, erased), messages=sorted(erased.seqs), said=said)

        scope = conversation.facts_scope
        if scope == conversation:
            return await self.revise(conversation, decide, receipt_id)
        said = await self.revise(conversation, decide, first_step(receipt_id))
        # Also without facts: it refuses a learner that has read the messages and is about to write.
        learned = await self.revise(scope, lambda facts: without(facts, erased), receipt_id)
        # One may have been added in between.
        await WorkItems(self.store).drop_unasked(conversation, erased.seqs)
        # The question counts as answered only now, because a repeat after a crash needs its `seqs`.
        answered = await self.scopes.update(conversation, lambda _: Revision(receipt_id=receipt_id))
        return replace(said, records=said.records + learned.records, left=answered.left)

    async def take_out(
        self, conversation: Scope, seqs: Collection[int], entry: Change, receipt_id: str = ""
    ) -> None:
        """Erase an exchange because it is answered again.

        Raise `LeaseLost` if the entry is gone, or if a message of the exchange was erased. The
        running state stays if it was not learned from the exchange. A repeat with the same
        `receipt_id` changes nothing, not even the entry.
        """
        erased = Erased(conversation.tag, seqs)

        def decide(here: ScopeMemory) -> Revision:
            left = without(here, erased)
            # Tools set `domain` without learning, so a state that has one may rest on any message.
            has_domain = bool(here.state) and orjson.loads(here.state).get("domain") is not None
            if 0 < here.watermark(STATE_LEARNER) < min(seqs) and not has_domain:
                stays = {State.PREFIX, StateUntrusted.PREFIX}
                left = replace(left, removed=[name for name in left.removed if name not in stays])
            # The former answer is deleted, and a question below it with it: it is asked once more.
            asked = [e for e in here.all(WaitingWrite) if isinstance(e.write, Remember)]
            again = [replace(each, answer=UNASKED) for each in asked if not each.answer]
            fields = [*left.fields, *again]
            return replace(left, messages=sorted(seqs), fields=fields, entry=entry)

        await self.revise(conversation, decide, receipt_id)

    async def rewrite(
        self,
        conversation: Scope,
        message: Message,
        exchange: Sequence[Message],
        entry: Change,
        *,
        learns: bool = True,
    ) -> None:
        """Give a message of a stored exchange this text.

        Behaviors learn again from the first message whose synopsis goes, unless `learns` is false:
        then only what rests on the exchange goes. Raise `LeaseLost` if the entry is gone.
        """
        erased = Erased(conversation.tag, [each.seq for each in exchange])
        former = [each for each in exchange if each.seq == message.seq]

        async def decide(here: ScopeMemory) -> Revision:
            left = without(here, erased)
            again = [each for each in here.synopses if each.last_seq >= message.seq]
            records = {*left.records, *(id_ for each in again for id_ in here.entries_of(each))}
            first = min([message.seq, *(each.first_seq for each in again)])
            if learns:
                fields = [*left.fields, *_watermarks_before(here, first)]
                left = replace(left, records=sorted(records), fields=fields)
            said = await self._newest(conversation)
            repeats = await self.find_repeats(conversation, former, message.text)
            # Of a reason below 0 there is no button: the words that an edit took stay hidden.
            hidden = [Hidden(seq, because=-message.seq) for seq in sorted(repeats)]
            return replace(left, added=hidden, said=said, rewritten=message, entry=entry)

        await self.learn_soon(conversation)
        await self.revise(conversation, decide, learns=learns)

    async def drop_facts(
        self, conversation: Scope, seqs: Collection[int], *, learns: bool = True
    ) -> None:
        """Erase facts about the person that rest on messages, and their items; safe to repeat.

        This also refuses a learner that has read the messages and is about to write.
        """
        scope = conversation.facts_scope
        [generation] = await self.store.read_meta(conversation, "generation")
        erased = Erased(conversation.tag, seqs, generation=int(generation or 0))

        def decide(facts: ScopeMemory) -> Revision:
            left = without(facts, erased)
            again = _watermarks_before(facts, min(seqs), of=conversation) if learns else ()
            return replace(left, fields=[*left.fields, *again])

        if scope != conversation:
            await self.revise(scope, decide)
        await WorkItems(self.store).drop_unasked(conversation, seqs)

    async def erase_share(
        self, group: Scope, person: int, until: float, receipt_id: str
    ) -> Receipt:
        """Erase a person's messages and files in a group up to a time, and what rests on them.

        What rests on messages that were dropped for lack of space goes too, because their sender is
        not known any more. The person's waiting messages must be gone before.
        """

        async def decide(here: ScopeMemory) -> Revision:
            seqs = await self._sent_by(group, person, until)
            # Read last, so that messages dropped in between count as unknown.
            log = self.store.keys.scope(group).log
            first = await self.store.client.call("XRANGE", log, "-", "+", "COUNT", 1)
            oldest = seq_of(first[0][0]) if first else inf
            erased = Erased(group.tag, seqs, oldest, sender_id=person, until=until)
            return replace(without(here, erased), messages=sorted(seqs))

        return await self.revise(group, decide, receipt_id)

    async def revise(
        self,
        scope: Scope,
        decide: Callable[[ScopeMemory], Revision | Awaitable[Revision]],
        receipt_id: str = "",
        *,
        learns: bool = True,
    ) -> Receipt:
        """Carry out what `decide` returns. If `learns`, an erased state is learned again."""
        decided = Revision()

        async def with_state(here: ScopeMemory) -> Revision:
            nonlocal decided
            made = decide(here)
            decided = replace(await made if isawaitable(made) else made, receipt_id=receipt_id)
            if learns and State.PREFIX in decided.removed:
                [newest] = await self.store.read_meta(scope, "next_seq")
                await self.learn_soon(scope)
                mark = Watermark(STATE_LEARNER, max(0, int(newest or 0) - self.tail))
                decided = replace(decided, fields=[*decided.fields, mark])
            return decided

        receipt = await self.scopes.update(scope, with_state)
        if learns and State.PREFIX in decided.removed:  # the first note may have come too early
            await self.learn_soon(scope)
        return receipt

    async def _newest(self, conversation: Scope) -> int:
        log = self.store.keys.scope(conversation).log
        newest = await self.store.client.call("XREVRANGE", log, "+", "-", "COUNT", 1)
        return seq_of(newest[0][0]) if newest else 0

    async def learn_soon(self, conversation: Scope) -> None:
        """Note that there is something to learn; any process takes it up."""
        await self.store.client.call("ZADD", self.store.keys.learning, time(), conversation.tag)

    async def _sent_by(self, group: Scope, person: int, until: float) -> set[int]:
        """Return the sequences of a person's messages in a group and of their answers.

        The turns of their tasks repeat what was said before, so they count whenever they began.
        """
        log = self.store.keys.scope(group).log
        exchanges: set[bytes] = set()
        seqs: set[int] = set()
        async for entry, fields in stream_entries(self.store.client, log):
            is_meant = float(fields[b"s"]) <= until or fields[b"m"].startswith(b"-")
            if int(fields[b"i"]) == person and is_meant:
                exchanges.add(fields[b"x"])
            if fields[b"x"] in exchanges:
                seqs.add(seq_of(entry))
        return seqs


def _watermarks_before(
    scope_memory: ScopeMemory, first: int, of: Scope | None = None
) -> list[Watermark]:
    """Return the watermarks that move back so that a message is learned again.

    In a person's scope these are the watermarks `of` one conversation.
    """
    return [
        Watermark(each.learner, first - 1)
        for each in scope_memory.all(Watermark)
        if each.seq >= first and (of is None or f"@{of.tag}@" in f"{each.learner}@")
    ]


@dataclass(frozen=True, slots=True)
class MemorySwitch:
    """Turns memory of a conversation off and on; an erasure does not change that.

    While it is off, nothing is learned, and only the messages of the window are stored.
    """

    store: Store

    async def turn_off(self, conversation: Scope) -> None:
        """Remember nothing that is said from now on; a repeat changes nothing."""
        await self.store.run("turn_off", conversation, {"ttl_s": self.store.ttl_s})

    async def turn_on(self, conversation: Scope) -> int:
        """Remember again; erase what was said meanwhile and return how many messages it was.

        If there were any, an open turn starts again.
        """
        erased = int(await self.store.run("turn_on", conversation, {"ttl_s": self.store.ttl_s}))
        if erased:
            await self.store.tell_erased(conversation)
        return erased
