"""What is remembered, as entries of a list: state, facts, synopses, documents, refused messages.

The first page is a portrait: the newest facts of each group. What is not in it comes behind.
"""

import asyncio
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, groupby, zip_longest
from math import inf

from bot.commands.fact_edits import EDIT
from bot.commands.paged_list import ASK, PER_PAGE, ListContent, ListEntry
from bot.commands.used_memories import state_entries
from bot.feature import Services
from bot.features.memory_page.about_people import is_about_people, names_of
from bot.reply.parts import shortened, utf16_length
from memory.behaviors.statements import mode_in, same_facts
from memory.behaviors.user_facts import UserFacts
from memory.documents import Chunk, documents
from memory.erasure.correcting import Correcting, wordings_of
from memory.learning.progress import learner_in
from memory.message import Message
from memory.queue.open_turn import is_off_record
from memory.scopes.changes import Revision, Write, chain_of, facts_behind, former_wordings
from memory.scopes.entries import Fact
from memory.scopes.fact_lists import fact_scopes, period, place_of, with_shown_id
from memory.scopes.fields import Field
from memory.scopes.history import ChatHistory
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import never_erased
from memory.scopes.stats import ConversationStats, count_conversation
from memory.search.excerpt import Asked, relevant_excerpt
from memory.store.keys import Scope
from memory.store.tasks import in_turns
from memory.text.untrusted_text import one_line

_LINE_UNITS, _FRESH_S = 220, 600
_MAX_FORMER = 10  # with more, a message would not hold them and the fact itself
_NEW, _OTHER = "memory.new", "memory.other"
_OF_FACTS = ("you", "group", "people", "now", "dated", "always")
_GROUPS = (_NEW, *(f"memory.{group}" for group in _OF_FACTS), _OTHER)
"""What stands above the groups of a list, in their order."""
_ON_PORTRAIT = 16
_NONE_NEW = 2**53  # above every id: at the first look nothing is new, not even what it has learned
_MAX_READ = 1_000  # newest messages that may tell which names are those of people
_PORTRAIT_UNITS, _AROUND_UNITS = 2_200, 40
"""UTF-16 units of all lines, and of a line's number and date; the rest fits the same message."""

_PINNED = "📌 "
PIN, UNPIN = "n", "u"
MOVE = "m"  # the action that moves a fact between all topics of a private chat and this one


@dataclass(frozen=True, slots=True)
class Looked(Field):
    """What people saw when they last looked at a scope with `/memory`."""

    PREFIX = "looked"
    update_id: int  # of the command
    before: int  # `newest` of the look before it
    newest: int  # the newest record at that time

    without = never_erased


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """The passage of a text that has a word; found once it is shown, as it takes 1 ms."""

    text: str
    word: str

    def __str__(self) -> str:
        return one_line(relevant_excerpt(self.text, Asked(self.word), _LINE_UNITS, utf16_length))


class MemoryEntries:
    """Reads what is remembered of a conversation and of the person in a private chat.

    Features add settings and lines.
    """

    def __init__(self, services: Services, word: str = "") -> None:
        self.word = word  # if given, only facts, synopses and imports that have it are returned
        self.services = services
        self._memory, self._histories = services.memory, services.memory.histories
        self._features, self.sentences = services.features, services.sentences

    async def content(self, language: str, conversation: Scope) -> ListContent:
        """Return the entries by group, the newest of each group first; raise `StoreError`.

        The first page has all of a short list, or else the newest of each group of facts and of
        what was learned since the look before the latest one. A word finds entries that have it. A
        code is a letter and an id: "x" (the state), "f12", "s3", "d<key>", "r7", "c5" (imported).
        """
        here = await self._histories.scopes.read(conversation)
        facts = await self._histories.scopes.read(conversation.facts_scope)
        if self.word:
            found = await in_turns(self._facts(language, facts, here, ()))
            found += await in_turns(self._synopses(language, here))
            found = [replace(each, group="") for each in found]
            found += await in_turns(self._imported(language, here))
            return ListContent("memory.found", found)
        history = await ChatHistory.read(self._histories, conversation)
        theirs = (m for m in history.messages[-_MAX_READ:] if m.is_first_party and m.sender_id)
        texts, code = [m.text for m in theirs], language[:2].lower()
        names = await asyncio.to_thread(names_of, facts.facts, texts, code)
        listed = await in_turns(self._facts(language, facts, here, names))
        synopses = await in_turns(self._synopses(language, here))
        state = state_entries(self.sentences, language, here)
        new = _new_codes(here, facts)
        fresh = [replace(each, group=_NEW) for each in (*listed, *synopses) if each.code in new]
        entries = [
            *sorted(fresh, key=lambda each: -new[each.code]),
            *(each for each in listed if each.code not in new),
            *(replace(each, group=_OTHER) for each in state),
            *(each for each in synopses if each.code not in new),
            *self._documents(language, here),
            *self._refused(language, [each for each in history.messages if each.is_refused]),
        ]
        is_short = len(entries) <= PER_PAGE
        portrait = _portrait([each for each in entries if is_short or each.group != _OTHER])
        shown_codes = {each.code for each in portrait}
        rest = [each for each in entries if each.code not in shown_codes]
        stats = await count_conversation(self._memory.store, conversation)
        learner = learner_in(facts.scope, UserFacts.name, here)
        learns = "facts" in self.services.settings.learn
        waits = learns and any(m.seq > facts.watermark(learner) for m in history.messages[-1:])
        mode = mode_in(facts)
        switches = (switch for each in self._features for switch in each.switches)
        settings = [switch.shown(conversation, facts) for switch in switches]
        settings += [f"memory.mode_{mode}"] * (mode != "auto" and not stats.is_off)
        shown_settings = (self.sentences.text(language, key) for key in settings if key)
        lines = (line for each in self._features for line in each.memory_lines)
        nothing = [] if entries else [self.sentences.text(language, "memory.empty")]
        return ListContent(
            "memory.learned",
            [*portrait, *_by_group(rest)],
            above=self._states(language, stats, facts.zone) or nothing,
            footer=[
                *filter(None, (line(language, here, facts) for line in lines)),
                " ".join((*shown_settings, self._counts(language, stats, waits=waits))),
            ],
            switches=_switches(mode, stats, learns=learns) if conversation.is_private else {},
            on_first=len(portrait),
        )

    async def look(self, conversation: Scope, update_id: int) -> None:
        """Note this look: the next one no longer shows as new what this one shows.

        The same `update_id` twice changes nothing. Off the record nothing counts as seen. In a
        group the look of one person counts for all, because all see the list. What was said just
        now is learned at once, for the next look. Raise `StoreError`.
        """
        if await is_off_record(self._memory.store, conversation):
            return

        async def decide(scope: ScopeMemory) -> Write | None:
            newest = max((each.id for each in (*scope.facts, *scope.synopses)), default=0)
            last = scope.get(Looked)
            if last is None:
                return Write(fields=[Looked(update_id, _NONE_NEW, newest)])
            if last.update_id == update_id or last.before == last.newest == newest:
                return None
            return Write(fields=[Looked(update_id, last.newest, newest)])

        for scope in {conversation, conversation.facts_scope}:
            await self._histories.scopes.update(scope, decide)
        self._memory.learner.asked_for.add(conversation)
        self.services.learn(conversation)

    def _states(self, language: str, stats: ConversationStats, zone: str) -> list[str]:
        """Return what one has to know first: that nothing is kept now."""
        text, found = self.sentences.text, []
        if stats.off_record_until > time.time():
            moment = self.sentences.local(language, stats.off_record_until, zone)
            found.append(text(language, "off.lasts", **moment))
        return [*found, text(language, "memory.is_off")] if stats.is_off else found

    def _counts(self, language: str, stats: ConversationStats, *, waits: bool) -> str:
        text = self.sentences.text
        is_on = not (stats.is_off or stats.off_record_until > time.time())
        keys = ["memory.summary"] * bool(stats.messages) + ["memory.is_on"] * is_on
        keys += ["memory.fresh"] * (waits and is_on and time.time() - stats.last_at < _FRESH_S)
        since = self.sentences.day(language, stats.first_at)
        return " ".join(text(language, key, messages=stats.messages, since=since) for key in keys)

    def _facts(
        self, language: str, facts: ScopeMemory, here: ScopeMemory, names: Collection[str]
    ) -> Iterator[ListEntry]:
        shows = next((each.shows_message for each in self._features if each.shows_message), "")
        for each in reversed(fact_scopes(facts, here)):
            is_topic = each.scope.is_private
            for fact in reversed(each.facts):
                if fact.is_current and self.word.casefold() in fact.text.casefold():
                    text = _PINNED * fact.is_pinned + shortened(fact.text, _LINE_UNITS)
                    day = self.sentences.day(language, fact.said_at)
                    id_ = with_shown_id(each.scope, fact).id
                    seqs = here.seqs_of(fact.sources)
                    pin = {UNPIN: "buttons.unpin"} if fact.is_pinned else {PIN: "buttons.pin"}
                    label = "buttons.everywhere" if is_topic else "buttons.only_topic"
                    move = {MOVE: label} if is_movable(here, each, fact) else {}
                    yield ListEntry(
                        f"f{id_}",
                        "memory.topic_fact" if is_topic else "memory.fact",
                        {"text": text, "date": day, "id": id_},
                        choices={EDIT: "buttons.edit", **pin, **move},
                        details=self._former(language, each, fact),
                        group=_group(fact, language, names, is_group=not here.scope.is_private),
                        source=f"{shows}:{max(seqs)}" if seqs and shows else "",
                    )

    def _former(self, language: str, facts: ScopeMemory, fact: Fact) -> list[str]:
        return [
            self.sentences.text(
                language,
                "memory.former",
                text=shortened(text, _LINE_UNITS),
                date=self.sentences.day(language, until),
            )
            for text, until in former_wordings(facts, fact)[-_MAX_FORMER:]
        ]

    def _synopses(self, language: str, here: ScopeMemory) -> Iterator[ListEntry]:
        found = [each for each in here.synopses if self.word.casefold() in each.text.casefold()]
        for synopsis in reversed(found):
            began = self.sentences.day(language, synopsis.began_at)
            ended = self.sentences.day(language, synopsis.ended_at)
            values = {
                "text": shortened(synopsis.first_statement, _LINE_UNITS),
                "dates": began if began == ended else f"{began} – {ended}",
                "id": synopsis.id,
            }
            yield ListEntry(f"s{synopsis.id}", "memory.synopsis", values, group=_OTHER)

    def _imported(self, language: str, here: ScopeMemory) -> Iterator[ListEntry]:
        """Yield what was imported and has the word; one passage cannot be deleted alone."""
        files, word = documents(here), self.word.casefold()
        for chunk in reversed(here.of_kind(Chunk)):
            file = files.get(chunk.document)
            if file and file.imported_from and word in chunk.text.casefold():
                day = self.sentences.day(language, chunk.said_at or file.added_at)
                values = {"name": _Excerpt(chunk.text, self.word), "date": day}
                key, group = "memory.document", "memory.imported"
                yield ListEntry(f"c{chunk.id}", key, values, without=ASK, group=group)

    def _documents(self, language: str, here: ScopeMemory) -> Iterator[ListEntry]:
        for document in sorted(documents(here).values(), key=lambda document: -document.added_at):
            day = self.sentences.day(language, document.added_at)
            values = {"name": document.title, "date": day}
            yield ListEntry(f"d{document.key}", "memory.document", values, group=_OTHER)

    def _refused(self, language: str, messages: Sequence[Message]) -> Iterator[ListEntry]:
        for message in reversed(messages):
            day = self.sentences.day(language, message.sent_at)
            values = {"text": shortened(message.text, _LINE_UNITS), "date": day}
            yield ListEntry(f"r{message.seq}", "memory.refused", values, group=_OTHER)


def _group(fact: Fact, language: str, names: Collection[str], *, is_group: bool) -> str:
    """Return the group of a fact by what is stored with it.

    A fact of the past without an end counts as present only if it is of a kind that changes.
    """
    has_date = bool(fact.from_day or fact.to_day)
    is_over = period(fact, UTC)[1] < datetime.now(UTC).date()
    if fact.is_pinned:
        return "memory.always"
    if not is_group and is_about_people(fact, language[:2].lower(), names):
        return "memory.people"
    if (has_date and not is_over) or (fact.changes and not (fact.to_day and is_over)):
        return "memory.now"
    if has_date:
        return "memory.dated"
    return "memory.group" if is_group else "memory.you"


def _portrait(entries: Sequence[ListEntry]) -> list[ListEntry]:
    groups = groupby(_by_group(entries), key=lambda each: each.group)
    places = zip_longest(*(list(few) for _, few in groups))
    best = [each for place in places for each in place if each][:_ON_PORTRAIT]
    texts = (str(each.values.get("text", "")) for each in best)  # a file's name is short
    units = accumulate(utf16_length(text) + _AROUND_UNITS for text in texts)
    fitting = zip(best, units, strict=True)
    return _by_group([each for each, used in fitting if used <= _PORTRAIT_UNITS])


def _by_group(entries: Sequence[ListEntry]) -> list[ListEntry]:
    return sorted(entries, key=lambda each: _GROUPS.index(each.group))


def _switches(mode: str, stats: ConversationStats, *, learns: bool) -> dict[str, str]:
    if stats.is_off or not learns:  # without facts there is no way to learn them, and no ✍
        return {"on": "buttons.memory_on"} if stats.is_off else {"off": "buttons.memory_off"}
    others = (each for each in ("auto", "ask", "explicit") if each != mode)
    found = {each: f"buttons.memory_{each}" for each in ("off", *others)}
    marks = "show" if stats.is_quiet else "hide"
    return found | {f"{marks} marks": f"buttons.{marks}_marks"}


def _new_codes(here: ScopeMemory, facts: ScopeMemory) -> dict[str, float]:
    """Return the codes of what was learned since the look before the latest, and when it was said.

    At the first look nothing is new, because the list shows all of it anyway. What a person has
    edited is not new to them.
    """
    seen = {scope.scope: scope.get(Looked) for scope in (here, facts)}
    before = {scope: found.before if found else inf for scope, found in seen.items()}
    new: dict[str, float] = {
        f"f{with_shown_id(each.scope, fact).id}": fact.said_at
        for each in fact_scopes(facts, here)
        for fact in each.facts
        if fact.is_current and not fact.replaced and fact.id > before[each.scope]
    }
    new |= {f"s{each.id}": each.ended_at for each in here.synopses if each.id > before[here.scope]}
    return new


def is_movable(here: ScopeMemory, facts: ScopeMemory, fact: Fact) -> bool:
    """Return whether a fact rests on messages of this one topic alone, since its last clear.

    So everything that erases these messages finds the fact in either scope. `facts` is the scope
    that has the fact.
    """
    if not here.scope.is_private or not here.scope.topic_id or not fact.is_current:
        return False
    known = facts_behind(facts, fact)
    sources = [source for each in known for source in each.sources]
    sources += [source for each in known for one in each.replaced for source in one.sources]
    return all(each.tag == here.scope.tag and each.epoch >= here.source_epoch for each in sources)


async def move_fact(correcting: Correcting, topic: Scope, fact_id: int) -> bool:
    """Move a fact from one scope to the other; return False if that is not possible.

    `fact_id` is its shown id. As after an edit, its messages are taken out of recall, so that
    nothing learns it from them again. After a crash both scopes may have the fact. A repeat
    then finishes the move.
    """
    source, stored_id = place_of(topic, fact_id)
    target = topic.facts_scope if source == topic else topic
    fact: Fact | None = None

    async def copy(there: ScopeMemory) -> Write | None:
        # The target was read first. If a message is erased after that, the write is refused.
        nonlocal fact
        facts = await correcting.scopes.read(source)
        here = facts if source == topic else there
        found = facts.record(stored_id)
        fact = None
        if isinstance(found, Fact) and is_movable(here, facts, found):
            is_stored = await correcting.senders(topic, [each.seq for each in found.sources])
            fact = found if is_stored else None
        if fact is None or same_facts(fact.text, (f for f in there.facts if f.is_current)):
            return None
        former = wordings_of(facts_behind(facts, fact)[1:], time.time())
        # Former ids mean nothing in the other scope.
        replaced = tuple(replace(each, id=0) for each in (*former, *fact.replaced))
        moved = replace(fact, id=0, replaced=replaced)
        return Write([moved], learned_from=None if target == topic else here)

    def remove(facts: ScopeMemory) -> Revision | None:
        found = facts.record(stored_id)
        return Revision(records=chain_of(facts, found)) if isinstance(found, Fact) else None

    await correcting.scopes.update(target, copy)
    if fact is None:
        return False
    await correcting.hide(topic, [each.seq for each in fact.sources])
    await correcting.scopes.update(source, remove)
    return True
