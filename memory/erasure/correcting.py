"""Deletes single memories that a person points at, and gives facts another wording.

The messages that a deleted or edited fact rests on stay in the history, but recall does not find
them and learning does not read them any more. Otherwise the old words would come back with them.
"""

from asyncio import gather
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from hashlib import blake2b
from time import time

from memory.behaviors.behavior_store import BehaviorState
from memory.behaviors.statements import stems
from memory.message import Message
from memory.scopes.changes import Revision, Write, chain_of, facts_behind
from memory.scopes.entries import Fact, Hidden, Pinned, Synopsis
from memory.scopes.fact_lists import place_of
from memory.scopes.fields import STATE_LEARNER, State, StateUntrusted, Watermark
from memory.scopes.log import message_of, seq_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Decide, Scopes
from memory.scopes.sources import Wording
from memory.search.words import content_terms, languages_of, words_of
from memory.store.keys import Scope
from memory.store.store import Store, stream_entries
from memory.work.items import WorkItems

_EXCHANGE = 2  # messages of an exchange
_ELSEWHERE = 2**48  # where reasons from another topic begin: above every sequence
_AT_ONCE = 8  # topics that are read and changed together
_MAX_WORDINGS = 10  # former ones that a fact keeps; older ones go


@dataclass(frozen=True, slots=True)
class Correcting:
    """Deletes facts, synopses and the running state of one conversation; edits and pins facts.

    A `fact_id` is a shown id (`memory/scopes/fact_lists.py`).
    """

    scopes: Scopes
    # Called before a fact is deleted or gets other words: what follows from it can go first.
    fact_leaves: list[Callable[[Scope, int], Awaitable[None]]] = field(default_factory=list)

    async def delete_fact(self, conversation: Scope, fact_id: int) -> tuple[int, ...] | None:
        """Erase a fact and those it had replaced; return the messages here that it rested on.

        Recall does not find these messages and their answers any more, nor answers that repeat the
        fact. None without such a fact.
        """
        for leaves in self.fact_leaves:
            await leaves(conversation, fact_id)
        place, stored_id = place_of(conversation, fact_id)
        gone: _LostWords | None = None

        async def decide(facts: ScopeMemory) -> Revision | None:
            nonlocal gone
            fact = facts.record(stored_id)
            if not isinstance(fact, Fact):
                return None
            chain = facts_behind(facts, fact)
            if gone is None or gone.chain != chain:  # else it goes on where it was refused
                gone = await self._lost_words(conversation, place, chain)
            hidden = await self._take_back(gone, facts)
            return replace(hidden, records=chain_of(facts, fact))

        await self.scopes.update(place, decide)
        if gone:
            await self._take_back(gone)
        return gone.seqs if gone else None

    async def edit_fact(self, conversation: Scope, fact_id: int, text: str, editor_id: int) -> bool:
        """Give a fact these words of a person; return False if there is no such fact.

        An id that the fact had before names it, too. A repeat changes nothing more.
        """
        for leaves in self.fact_leaves:
            await leaves(conversation, fact_id)
        place, stored_id = place_of(conversation, fact_id)
        edited: Fact | None = None
        gone: _LostWords | None = None
        lost: Collection[str] = ()

        async def decide(facts: ScopeMemory) -> Revision | None:
            nonlocal edited, gone, lost
            edited = present_fact(facts, stored_id)
            if edited is None:
                return None
            now = time()
            chain = facts_behind(facts, edited)
            replaced = wordings_of(chain, now)
            lost = frozenset().union(*(stems(each.text) for each in replaced)) - stems(text)
            if edited.text == text:
                return None
            if gone is None or gone.chain != chain:
                gone = await self._lost_words(conversation, place, chain, text)
            hidden = await self._take_back(gone, facts)
            sources = tuple(replace(each, sender_id=editor_id, said="") for each in edited.sources)
            new = Fact(0, text, sources, now, replaced=replaced, changes=edited.changes)
            new = new.in_place_of(edited)
            added, removed = [new, *hidden.added], _states_with(lost, facts)
            records = chain_of(facts, edited)
            return replace(hidden, records=records, added=added, removed=removed)

        await self.scopes.update(place, decide)
        if edited is None:
            return False
        if gone:
            await self._take_back(gone)
        seqs = await self._resting_on(edited)
        for scope in {conversation, *seqs}:
            await self._drop_summaries(scope, seqs.get(scope, ()), lost)
        return True

    async def pin_fact(self, conversation: Scope, fact_id: int, *, is_pinned: bool) -> bool:
        """Let the model always see a fact, or no longer; return False if it does not hold any more.

        A repeat changes nothing. A learner that has read the fact begins again, so that a fact
        which replaces this one is pinned, too.
        """
        place, stored_id = place_of(conversation, fact_id)
        holds = False

        def decide(facts: ScopeMemory) -> Revision | None:
            nonlocal holds
            fact = facts.record(stored_id)
            holds = isinstance(fact, Fact) and fact.is_current
            is_other = isinstance(fact, Fact) and holds and fact.is_pinned != is_pinned
            return Revision(added=[Pinned(stored_id, is_pinned)]) if is_other else None

        await self.scopes.update(place, decide)
        return holds

    async def _drop_summaries(
        self, conversation: Scope, seqs: Collection[int], gone: Collection[str]
    ) -> None:
        """Erase the summaries of these messages that contain a word of `gone`.

        An open turn begins again in any case, because it may have read the old wording.
        """

        async def decide(here: ScopeMemory) -> Revision:
            records = [
                id_
                for each in here.synopses
                if any(each.first_seq <= seq <= each.last_seq for seq in seqs)
                if not stems(each.text).isdisjoint(gone)
                for id_ in here.entries_of(each)
            ]
            state = Revision()
            if not stems(here.state).isdisjoint(gone):
                state = await self._without_state(conversation)
            removed = [*state.removed, *_states_with(gone, here)]
            return replace(state, records=records, removed=removed)

        await self.scopes.update(conversation, decide)

    async def delete_synopsis(self, conversation: Scope, synopsis_id: int) -> None:
        """Erase a synopsis; the messages that it sums up stay."""

        def decide(here: ScopeMemory) -> Revision | None:
            is_there = isinstance(here.record(synopsis_id), Synopsis)
            return Revision(records=[synopsis_id]) if is_there else None

        await self.scopes.update(conversation, decide)

    async def delete_state(self, conversation: Scope) -> None:
        """Erase the running state; it is learned again from later messages only."""
        await self.scopes.update(conversation, lambda _: self._without_state(conversation))

    async def _without_state(self, conversation: Scope) -> Revision:
        [newest] = await self.scopes.store.read_meta(conversation, "next_seq")
        removed = [State.PREFIX, StateUntrusted.PREFIX]
        return Revision(fields=[Watermark(STATE_LEARNER, int(newest or 0))], removed=removed)

    async def senders(self, conversation: Scope, seqs: Sequence[int]) -> set[int]:
        """Return the ids of the senders of these messages; messages that are gone have none."""
        store, log = self.scopes.store, self.scopes.store.keys.scope(conversation).log
        stored = await store.client.pipeline([("XRANGE", log, seq, seq) for seq in seqs])
        return {int(fields[b"i"]) for entries in stored for _, fields in entries}

    async def _lost_words(
        self, conversation: Scope, place: Scope, chain: Sequence[Fact], instead: str = ""
    ) -> "_LostWords":
        """Return what goes with a fact; any topic of the person's chat may have repeated it."""
        gone = _LostWords(conversation, place, chain, instead)
        topics = await self._topics(conversation) if place.is_person else ()
        resting = await self._resting_on(*gone.wordings)
        before_sources = {scope: max(0, min(seqs) - 1) for scope, seqs in resting.items()}
        gone.read_until = dict.fromkeys(topics, 0) | before_sources | {conversation: 0}
        said_here = (await self._resting_on(chain[0])).get(conversation, ())
        gone.seqs = tuple(seq for seq in said_here if seq > 0)
        return gone

    async def _topics(self, conversation: Scope) -> list[Scope]:
        store = self.scopes.store
        tags = await store.client.call("HKEYS", store.keys.person(conversation.chat_id))
        return [scope for tag in tags if (scope := Scope(tag.decode())).is_private]

    async def _take_back(self, gone: "_LostWords", facts: ScopeMemory | None = None) -> Revision:
        """Hide the messages with a fact's words in every conversation except the fact's own.

        Return the revision that does the same there.
        Call it with the `facts` before the fact goes, so that a repeat after a crash still finds
        the fact, and once more after it, for answers that were committed in between. Later answers
        cannot have the fact, because open turns begin again.
        """
        here, store = Revision(), self.scopes.store
        if facts and gone.place in gone.read_until:
            here = await gone.hiding(store, facts)
        others = [scope for scope in gone.read_until if scope != gone.place]
        await self._update_each(others, partial(gone.hiding, store))
        gone.found = {scope: each for scope, each in gone.found.items() if scope == gone.place}
        for conversation, seqs in (await self._resting_on(*gone.chain)).items():
            await WorkItems(store).drop_unasked(conversation, seqs)
        return here

    async def _update_each(self, scopes: Sequence[Scope], decide: Decide) -> None:
        """Update a few scopes at a time, so that calls for other people wait behind few."""
        for at in range(0, len(scopes), _AT_ONCE):
            updates = (self.scopes.update(each, decide) for each in scopes[at : at + _AT_ONCE])
            for outcome in await gather(*updates, return_exceptions=True):  # none goes on alone
                if isinstance(outcome, BaseException):
                    raise outcome

    async def _resting_on(self, *facts: Fact | Wording) -> dict[Scope, list[int]]:
        """Return by conversation the sequences of the messages that facts rest on.

        A message of a conversation that has expired since counts as minus its sequence.
        """
        sources = {source for fact in facts for source in fact.sources}
        found: dict[Scope, list[int]] = {}
        for scope in {Scope(source.tag) for source in sources}:
            [generation] = await self.scopes.store.read_meta(scope, "generation")
            found[scope] = sorted(
                each.seq if each.is_of(scope.tag, int(generation or 0)) else -each.seq
                for each in sources
                if each.tag == scope.tag
            )
        return found

    async def hide(self, conversation: Scope, seqs: Sequence[int], *, hidden: bool = True) -> bool:
        """Keep messages and their answers, but do not let recall find them; or let it again.

        `hidden=False` also brings back what was hidden because of these messages, in any topic.
        Return false if none of them is there any more; then nothing changes.
        """
        log = self.scopes.store.keys.scope(conversation).log
        stored = await self.scopes.store.client.pipeline(
            [("XRANGE", log, f"{seq}-0", "+", "COUNT", _EXCHANGE) for seq in seqs]
        )
        exchanges = [
            seq_of(entry)
            for seq, entries in zip(seqs, stored, strict=True)
            for entry, fields in entries
            if seq_of(entries[0][0]) == seq and fields[b"x"] == entries[0][1][b"x"]
        ]

        async def decide(meant: Collection[int], here: ScopeMemory) -> Write | None:
            if hidden:
                entries = [Hidden(seq) for seq in exchanges if seq not in here.hidden.get(seq, ())]
            else:
                entries = [
                    Hidden(seq, hidden=False, because=reason)
                    for seq, reasons in here.hidden.items()
                    for reason in reasons.intersection(meant)
                ]
            # First, because after a crash it is repeated. If Redis is full, the write fails, too.
            version, noted = (here.generation, int(here.version[1] or 0)), map(astuple, entries)
            await self.scopes.store.journal.note_parts(here.scope, version, ((), (), ()), noted)
            return Write(entries) if entries else None

        if exchanges:
            before = (await self.scopes.read(conversation)).hidden
            elsewhere = {each for seq in seqs for each in before.get(seq, ()) if each >= _ELSEWHERE}
            await self.scopes.update(conversation, partial(decide, {*seqs, *exchanges, *elsewhere}))
        if exchanges and not hidden:
            reasons = [_elsewhere(conversation, seq) for seq in seqs]
            await self._update_each(await self._topics(conversation), partial(decide, reasons))
        return bool(exchanges)


class _LostWords:
    """The words of a fact and of those it had replaced, when it is deleted or gets other words.

    An answer repeats them if it had one of these facts, and has a word of it that is neither in its
    question nor in the text that comes `instead`.
    """

    def __init__(self, here: Scope, place: Scope, chain: Sequence[Fact], instead: str) -> None:
        self.here, self.place, self.chain = here, place, chain
        self.wordings = wordings = wordings_of(chain, time())
        self._languages = languages_of(words_of(" ".join(each.text for each in wordings)), {})
        sign = -1 if place.is_private else 1  # as `place_of` reads it
        self._terms = {
            f"f{sign * each.id}": content_terms(each.text, self._languages) for each in wordings
        }
        self._stays = content_terms(instead, self._languages)
        # For each conversation, the sequence up to which nothing needs to be looked at.
        self.read_until: dict[Scope, int] = {}
        self.found: dict[Scope, list[Hidden]] = {}  # what is not written yet
        self.seqs: tuple[int, ...] = ()  # messages of `here` that `chain[0]` rests on

    async def hiding(self, store: Store, here: ScopeMemory) -> Revision:
        """Return what hides here the messages of `chain[0]`, and answers that repeat the facts."""
        sources = here.seqs_of(self.chain[0].sources)
        log, added = store.keys.scope(here.scope).log, self.found.setdefault(here.scope, [])
        question, exchanges, seq = "", set[int](), self.read_until[here.scope]
        # One button takes back all that is hidden elsewhere.
        reason = _elsewhere(self.here, self.seqs[0]) if self.seqs and here.scope != self.here else 0
        async for entry, fields in stream_entries(store.client, log, f"({seq}-0"):
            message = message_of(seq := seq_of(entry), fields)
            if seq in sources:
                exchanges.add(message.exchange)
            if message.role == "user":
                question = message.text
            because = reason or (sources[0] if sources else seq)
            is_meant = message.exchange in exchanges or self._is_repeated(message, question)
            if is_meant and because not in here.hidden.get(seq, ()):
                added.append(Hidden(seq, because=because))
            self.read_until[here.scope] = seq
        return Revision(added=[*added], said=seq)

    def _is_repeated(self, message: Message, question: str) -> bool:
        used = self._terms.keys() & message.used.split()
        if message.role == "user" or not used:
            return False
        said = content_terms(message.text, self._languages) - self._stays
        said -= content_terms(question, self._languages)
        return any(not self._terms[code].isdisjoint(said) for code in used)


def present_fact(facts: ScopeMemory, fact_id: int) -> Fact | None:
    """Return the fact that has this id now, or had it before a person edited it."""
    fact = facts.record(fact_id)
    if isinstance(fact, Fact):
        return fact
    return next((f for f in facts.facts if any(w.id == fact_id for w in f.replaced)), None)


def wordings_of(former: Sequence[Fact], now: float) -> tuple[Wording, ...]:
    """Return what these facts said and had replaced, oldest first."""
    wordings = [each for fact in former for each in fact.replaced]
    wordings += [
        Wording(
            fact.id,
            fact.text,
            tuple(replace(each, said="") for each in fact.sources),
            fact.said_at,
            fact.ended_at or now,
        )
        for fact in former
    ]
    return tuple(sorted(wordings, key=lambda each: each.replaced_at)[-_MAX_WORDINGS:])


def _elsewhere(conversation: Scope, seq: int) -> int:
    """Return what stands for a message as the reason in another topic."""
    digest = blake2b(f"{conversation.tag} {seq}".encode(), digest_size=6).digest()
    return _ELSEWHERE + int.from_bytes(digest)


def _states_with(gone: Collection[str], here: ScopeMemory) -> list[str]:
    return [each.name for each in here.all(BehaviorState) if not stems(each.text).isdisjoint(gone)]
