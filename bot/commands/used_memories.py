"""The memories that an answer used, and the running state, as entries of a list.

An answer used those whose text stood in its prompt; its log entry names them (`CallContext.used`).
A memory that was erased since is not listed, so nothing of it is kept for this.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import orjson

from bot.commands.fact_edits import EDIT
from bot.commands.paged_list import ASK, ListEntry
from bot.commands.sentences import Sentences
from bot.reply.parts import Part, Quote, shortened
from memory.behaviors.statements import stems
from memory.documents import documents
from memory.erasure.correcting import present_fact
from memory.message import Message
from memory.scopes.entries import Fact, Synopsis
from memory.scopes.fact_lists import place_of, with_shown_id
from memory.scopes.history import ChatHistory, Histories
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope

SHOW = "s"  # the action that shows where a memory comes from

_LINE_UNITS, _STATE_UNITS = 160, 700
_UNKNOWN = ("", "unknown")
_QUOTE_CHARS = 200


@dataclass(frozen=True, slots=True)
class UsedMemory:
    """One line of the list."""

    at: float  # when it was said
    entry: ListEntry
    source: Message | None = None  # where it comes from; None if that is gone or in another topic


@dataclass(frozen=True, slots=True)
class _Reading:
    language: str
    answer: Message
    here: ScopeMemory
    facts: ScopeMemory
    messages: dict[int, Message]


class UsedMemories:
    """Finds what answers used."""

    def __init__(self, histories: Histories, sentences: Sentences) -> None:
        self._histories = histories
        self.sentences = sentences

    async def read(self, language: str, conversation: Scope, seq: int) -> list[UsedMemory]:
        """Return what an answer used: first what it or its question says, the state last."""
        history = await ChatHistory.read(self._histories, conversation)
        messages = {message.seq: message for message in history.messages}
        if seq not in messages:
            return []
        scopes = self._histories.scopes
        here = await scopes.read(conversation)
        facts = await scopes.read(conversation.facts_scope)
        reading = _Reading(language, messages[seq], here, facts, messages)
        codes = dict.fromkeys(messages[seq].used.split())
        found = [*self._facts(reading, codes), *self._synopses(reading, codes)]
        found += await self._documents(reading, codes)
        found += self._messages(reading, codes)
        found += await self._other_topics(reading, codes)
        answer = messages[seq]
        said = stems(" ".join(m.text for m in messages.values() if m.exchange == answer.exchange))
        found.sort(key=lambda used: (-len(stems(str(used.entry.values["text"])) & said), -used.at))
        states = state_entries(self.sentences, language, here) if "x" in codes else ()
        return [*found, *(UsedMemory(0, replace(each, without=SHOW)) for each in states)]

    def source(self, language: str, used: UsedMemory) -> Part:
        """Return a part that replies to where a memory comes from, or tells it with its date."""
        values, message = used.entry.values, used.source
        if message is None or not message.ids_in_chat:
            return self.sentences.say(language, "why.source_gone", **values)[0]
        # A passage that stands in the person's first message, as Telegram has it. Our answers are
        # not quoted, because Telegram shows them without their Markdown.
        text = "" if message.role == "assistant" else message.text
        if message.lengths:
            text = text[: max(0, message.lengths[0])]
        first, *_ = text.strip().splitlines() or [""]
        quote = Quote(message.ids_in_chat[0], first[:_QUOTE_CHARS].strip())
        return replace(self.sentences.say(language, "why.source", **values)[0], quote=quote)

    def _facts(self, reading: _Reading, codes: Iterable[str]) -> Iterator[UsedMemory]:
        for id_ in _ids("f", codes):
            scope, stored_id = place_of(reading.here.scope, id_)
            facts = reading.here if scope == reading.here.scope else reading.facts
            fact = present_fact(facts, stored_id) or facts.record(stored_id)
            if not isinstance(fact, Fact):
                continue
            if fact.said_at > reading.answer.sent_at and not fact.replaced:
                continue  # the person's scope expired since, and ids were given again
            source = reading.messages.get(max(reading.here.seqs_of(fact.sources), default=0))
            key = "why.fact" if reading.here.scope.is_private else "why.fact_group"
            code, text_and_time = f"f{with_shown_id(scope, fact).id}", (fact.text, fact.said_at)
            used = self._used(reading.language, code, key, text_and_time, source)
            choices = {EDIT: "buttons.edit"} if fact.is_current else {}
            yield replace(used, entry=replace(used.entry, choices=choices))

    def _synopses(self, reading: _Reading, codes: Iterable[str]) -> Iterator[UsedMemory]:
        for id_ in _ids("s", codes):
            synopsis = reading.here.record(id_)
            if isinstance(synopsis, Synopsis) and synopsis.ended_at <= reading.answer.sent_at:
                source = reading.messages.get(synopsis.first_seq)
                text_and_time = synopsis.first_statement, synopsis.began_at
                yield self._used(reading.language, f"s{id_}", "why.synopsis", text_and_time, source)

    async def _documents(self, reading: _Reading, codes: Iterable[str]) -> list[UsedMemory]:
        found = []
        for code in codes:
            key, _, tag = code[1:].partition("@")
            if code.startswith("d"):
                place = reading.here
            elif code.startswith("o") and tag.startswith("d:"):
                place = await self._histories.scopes.read(Scope(tag))  # the operator's
            else:
                continue
            if document := documents(place).get(key):
                text_and_time = document.title, document.added_at
                used = self._used(reading.language, code[0] + key, "why.document", text_and_time)
                found.append(used)
        return found

    async def _other_topics(self, reading: _Reading, codes: Iterable[str]) -> list[UsedMemory]:
        by_topic: dict[int, set[int]] = {}
        for code in codes:
            seq_there, _, topic_id = code[1:].partition("@")
            if code.startswith("t") and seq_there.isdecimal() and topic_id.isdecimal():
                by_topic.setdefault(int(topic_id), set()).add(int(seq_there))
        found = []
        for topic, seqs in by_topic.items():
            there = Scope.of_chat(reading.here.scope.chat_id, topic)
            history = await ChatHistory.read(self._histories, there)
            said = {message.seq: message for message in history.messages}
            for seq in seqs - set(history.hidden):
                message = said.get(seq)
                if message and message.sent_at <= reading.answer.sent_at:
                    text_and_time, code = (message.text, message.sent_at), f"t{seq}@{topic}"
                    found.append(self._used(reading.language, code, "why.topic", text_and_time))
        return found

    def _messages(self, reading: _Reading, codes: Iterable[str]) -> Iterator[UsedMemory]:
        """Yield one line for each recalled exchange: its question, if that was shown."""
        shown = set()
        by_meaning = {int(code[1:-1]) for code in codes if code[:1] == "m" and code[-1] == "~"}
        for seq in sorted({*_ids("m", codes), *by_meaning}):
            message = reading.messages.get(seq)
            if message is None or seq in reading.here.hidden or message.exchange in shown:
                continue
            shown.add(message.exchange)
            key = "why.meaning" if seq in by_meaning else "why.words"
            text_and_time = message.text, message.sent_at
            yield self._used(reading.language, f"m{seq}", key, text_and_time, message)

    def _used(
        self,
        language: str,
        code: str,
        key: str,
        text_and_time: tuple[str, float],
        source: Message | None = None,
    ) -> UsedMemory:
        text, at = text_and_time
        values = {"text": shortened(text, _LINE_UNITS), "date": self.sentences.day(language, at)}
        # The operator's documents and what was said in other topics are not deleted from here.
        return UsedMemory(at, ListEntry(code, key, values, ASK if code[0] in "ot" else ""), source)


def state_entries(sentences: Sentences, language: str, here: ScopeMemory) -> Iterator[ListEntry]:
    """Yield the running state, if there is one."""
    fields = orjson.loads(here.state) if here.state else {}
    if text := " · ".join(_labelled(sentences, language, fields)):
        yield ListEntry("x", "memory.state", {"text": shortened(text, _STATE_UNITS)})


def _labelled(sentences: Sentences, language: str, fields: object) -> Iterator[str]:
    """Yield each known field of a state with its label; one of the operator's own has its name."""
    for name, content in fields.items() if isinstance(fields, dict) else ():
        key, own = f"state.{name}", f"{name}:".replace("_", " ")
        label = sentences.text(language, key) if sentences.has(key) else own
        is_list = isinstance(content, list)
        said = sentences.joined(language, map(str, content)) if is_list else content
        if isinstance(content, dict):
            yield from _labelled(sentences, language, content)
        elif said is not None and str(said).strip().lower() not in _UNKNOWN:
            yield f"{label} {said}"


def _ids(kind: str, codes: Iterable[str]) -> list[int]:
    """Return the ids in the codes of a kind; codes of an unknown form are ignored."""
    return [
        int(code[1:])
        for code in codes
        if code[:1] == kind and code[1:].removeprefix("-").isdecimal()
    ]
