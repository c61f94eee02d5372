"""What is remembered, as entries of a list: state, facts, synopses, documents, refused messages."""

import time
from collections.abc import Callable, Iterator, Sequence
from math import inf

import orjson

from bot.commands.memory_settings import MemoryWords
from bot.commands.paged_list import ListContent, ListEntry
from bot.commands.sentences import Sentences
from bot.reply.utf16 import utf16_slice
from memory.behaviors.learning_mode import mode_in
from memory.documents.library import documents
from memory.erasure.moving import is_movable
from memory.limits.stats import ConversationStats, count_conversation
from memory.memory import Memory
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.entries import Fact
from memory.scopes.fields import Looked
from memory.scopes.history import ChatHistory
from memory.scopes.provenance import former_wordings
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.topic_facts import fact_scopes, shown
from memory.store.keys import Scope

_LINE_UNITS = 220
_STATE_UNITS = 700
_UNKNOWN = ("", "unknown")

_PINNED = "📌 "
PIN, UNPIN = "n", "u"
MOVE = "m"
"""The action that moves a fact between all topics of a private chat and this one."""
EDIT = "e"
"""The action that asks for the new wording of a fact."""


MemoryLine = Callable[[str, ScopeMemory, ScopeMemory], str]
"""Returns a line below the entries, "" for none.

It gets the language, the conversation, and the scope of its facts.
"""


class MemoryEntries:
    """Reads what is remembered of a conversation and of the person in a private chat.

    `switches` and `lines` are those of features.
    """

    def __init__(
        self,
        memory: Memory,
        sentences: Sentences,
        switches: Sequence[MemoryWords] = (),
        lines: Sequence[MemoryLine] = (),
    ) -> None:
        self._lines = lines
        self._memory = memory
        self._switches = switches
        self._histories = memory.histories
        self.sentences = sentences

    async def content(self, language: str, conversation: Scope, word: str = "") -> ListContent:
        """Return the entries, facts first and the newest of each kind first; raise `StoreError`.

        What was learned since the look before the latest one comes first, the newest first. Only
        facts and synopses with `word` are in it, if that is given. A code is the kind's letter and
        an id: "x" (the state), "f12", "s3", "d<key>", "r7".
        """
        here = await self._histories.scopes.read(conversation)
        facts = await self._histories.scopes.read(conversation.facts_scope)
        listed = list(self._facts(language, facts, here, word.casefold()))
        synopses = list(self._synopses(language, here, word.casefold()))
        if word:
            return ListContent("memory.found", [*listed, *synopses])
        history = await ChatHistory.read(self._histories, conversation)
        refused = [message for message in history.messages if message.is_refused]
        new = _new_codes(here, facts)
        entries = [
            *sorted(
                (each for each in (*listed, *synopses) if each.code in new),
                key=lambda each: new[each.code],
                reverse=True,
            ),
            *(each for each in listed if each.code not in new),
            *self.state(language, here),
            *(each for each in synopses if each.code not in new),
            *self._documents(language, here),
            *self._refused(language, refused),
        ]
        stats = await self._counted(conversation)
        mode = mode_in(facts)
        footer = []
        shown_keys = (switch.shown(conversation, facts) for switch in self._switches)
        footer += [self.sentences.text(language, key) for key in shown_keys if key]
        footer += filter(None, (line(language, here, facts) for line in self._lines))
        if mode != "auto" and not stats.is_off:
            footer.append(self.sentences.text(language, f"memory.mode_{mode}"))
        footer.append(self._counts(language, stats))
        return ListContent(
            "memory.learned",
            entries,
            len(new),
            "memory.new",
            above=self._states(language, stats),
            footer=footer,
            switches=_switches(mode, stats) if conversation.is_private else {},
        )

    async def look(self, conversation: Scope, update_id: int) -> None:
        """Count what was learned until now as seen from the next look on; a repeat does nothing.

        Off the record nothing counts as seen. In a group the look of one person counts for all,
        because all see the list. Raise `StoreError`.
        """
        if (await self._counted(conversation)).off_record_until > time.time():
            return

        async def decide(scope: ScopeMemory) -> Write | None:
            newest = max((each.id for each in (*scope.facts, *scope.synopses)), default=0)
            last = scope.get(Looked)
            if last is None:
                return Write(fields=[Looked(update_id, newest, newest)])
            if last.update_id == update_id or last.before == last.newest == newest:
                return None
            return Write(fields=[Looked(update_id, last.newest, newest)])

        for scope in {conversation, conversation.facts_scope}:
            await self._histories.scopes.update(scope, decide)

    def _states(self, language: str, stats: ConversationStats) -> list[str]:
        """Return what one has to know first: that nothing is there, or that nothing is kept now."""
        text, found = self.sentences.text, []
        if not stats.messages:
            found.append(text(language, "memory.empty"))
        if stats.off_record_until > time.time():
            moment = self.sentences.local(language, stats.off_record_until, "")
            found.append(text(language, "off.lasts", **moment))
        if stats.is_off:
            found.append(text(language, "memory.is_off"))
        return found

    async def _counted(self, conversation: Scope) -> ConversationStats:
        return await count_conversation(self._memory.client, self._memory.keys, conversation)

    def _counts(self, language: str, stats: ConversationStats) -> str:
        text = self.sentences.text
        keys = ["memory.summary"] * bool(stats.messages) + ["memory.is_on"] * (not stats.is_off)
        since = self.sentences.day(language, stats.first_at)
        said = (text(language, key, messages=stats.messages, since=since) for key in keys)
        return " ".join(said)

    def state(self, language: str, here: ScopeMemory) -> Iterator[ListEntry]:
        """Yield the running state, if there is one."""
        fields = orjson.loads(here.state) if here.state else {}
        if text := " · ".join(self._labelled(language, fields)):
            yield ListEntry("x", "memory.state", {"text": shortened(text, _STATE_UNITS)})

    def _facts(
        self, language: str, facts: ScopeMemory, here: ScopeMemory, word: str = ""
    ) -> Iterator[ListEntry]:
        """Yield the facts that hold and have a word, those of the topic alone first."""
        for each in reversed(fact_scopes(facts, here)):
            is_topic = each.scope.is_private
            for fact in reversed(each.facts):
                if fact.is_current and word in fact.text.casefold():
                    text = _PINNED * fact.is_pinned + shortened(fact.text, _LINE_UNITS)
                    day = self.sentences.day(language, fact.said_at)
                    id_ = shown(each.scope, fact).id
                    pin = {UNPIN: "buttons.unpin"} if fact.is_pinned else {PIN: "buttons.pin"}
                    label = "buttons.everywhere" if is_topic else "buttons.only_topic"
                    move = {MOVE: label} if is_movable(here, each, fact) else {}
                    yield ListEntry(
                        f"f{id_}",
                        "memory.topic_fact" if is_topic else "memory.fact",
                        {"text": text, "date": day, "id": id_},
                        choices={EDIT: "buttons.edit", **pin, **move},
                        details=self._former(language, each, fact),
                    )

    def _former(self, language: str, facts: ScopeMemory, fact: Fact) -> list[str]:
        """Return the former wordings of a fact and the facts that it replaced, oldest first."""
        return [
            self.sentences.text(
                language,
                "memory.former",
                text=shortened(text, _LINE_UNITS),
                date=self.sentences.day(language, until),
            )
            for text, until in former_wordings(facts, fact)
        ]

    def _synopses(self, language: str, here: ScopeMemory, word: str = "") -> Iterator[ListEntry]:
        for synopsis in reversed(here.synopses):
            if word not in synopsis.text.casefold():
                continue
            began = self.sentences.day(language, synopsis.began_at)
            ended = self.sentences.day(language, synopsis.ended_at)
            first, *_ = synopsis.text.splitlines() or [""]
            values = {
                "text": shortened(first, _LINE_UNITS),
                "dates": began if began == ended else f"{began} – {ended}",
                "id": synopsis.id,
            }
            yield ListEntry(f"s{synopsis.id}", "memory.synopsis", values)

    def _documents(self, language: str, here: ScopeMemory) -> Iterator[ListEntry]:
        newest = sorted(documents(here).values(), key=lambda document: -document.added_at)
        for document in newest:
            day = self.sentences.day(language, document.added_at)
            values = {"name": document.title, "date": day}
            yield ListEntry(f"d{document.key}", "memory.document", values)

    def _refused(self, language: str, messages: Sequence[Message]) -> Iterator[ListEntry]:
        for message in reversed(messages):
            day = self.sentences.day(language, message.sent_at)
            values = {"text": shortened(message.text, _LINE_UNITS), "date": day}
            yield ListEntry(f"r{message.seq}", "memory.refused", values)

    def _labelled(self, language: str, fields: object) -> Iterator[str]:
        """Yield each known field of a state with its label."""
        for name, content in fields.items() if isinstance(fields, dict) else ():
            if isinstance(content, dict):
                yield from self._labelled(language, content)
            elif isinstance(content, list):
                if content:
                    yield f"{self._label(language, name)}: {', '.join(map(str, content))}"
            elif content is not None and str(content).strip().lower() not in _UNKNOWN:
                yield f"{self._label(language, name)}: {content}"

    def _label(self, language: str, name: str) -> str:
        """Return the catalogue's label, or the name itself for a field of the operator's own."""
        if self.sentences.has(f"state.{name}"):
            return self.sentences.text(language, f"state.{name}")
        return name.replace("_", " ")


def _switches(mode: str, stats: ConversationStats) -> dict[str, str]:
    """Return the settings that can be chosen now, with the labels of their buttons."""
    if stats.is_off:
        return {"on": "buttons.memory_on"}
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
        f"f{fact.id}": fact.said_at
        for fact in facts.facts
        if fact.is_current and not fact.replaced and fact.id > before[facts.scope]
    }
    new |= {f"s{each.id}": each.ended_at for each in here.synopses if each.id > before[here.scope]}
    return new


def shortened(text: str, max_units: int) -> str:
    """Return the first UTF-16 units of a text; "…" follows if there are more."""
    head = utf16_slice(text, 0, max_units)
    return text if head == text else f"{head.rstrip('�')}…"
