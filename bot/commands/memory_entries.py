"""What is remembered as lines of a list: state, facts, synopses, documents, refused words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from bot.commands.sentences import Sentences
from bot.reply.utf16 import utf16_slice
from memory.documents.library import documents
from memory.message import Message
from memory.scopes.scope_memory import ScopeMemory

_LINE_UNITS = 220
_STATE_UNITS = 700
_SAYS_NOTHING = ("", "unknown")


@dataclass(frozen=True, slots=True)
class Line:
    """One memory; `code` is kind and id as a button names them, `key` its sentence's."""

    code: str
    key: str
    values: Mapping[str, str] = field(default_factory=dict)


class MemoryLines:
    """Words what is remembered in one language."""

    def __init__(self, sentences: Sentences, language: str) -> None:
        self._sentences = sentences
        self._language = language

    def list(self, here: ScopeMemory, facts: ScopeMemory, refused: Sequence[Message]) -> list[Line]:
        """Return the running state, current facts, synopses, documents and refused words.

        The newest come first each.
        """
        return [
            *self._state(here),
            *self._facts(facts),
            *self._synopses(here),
            *self._documents(here),
            *self._refused(refused),
        ]

    def _state(self, here: ScopeMemory) -> Iterator[Line]:
        fields = orjson.loads(here.state) if here.state else {}
        text = " · ".join(self._labelled(fields))
        if text:
            yield Line("x", "memory.state", {"text": _shortened(text, _STATE_UNITS)})

    def _facts(self, facts: ScopeMemory) -> Iterator[Line]:
        for fact in reversed(facts.facts):
            if fact.is_current:
                text = _shortened(fact.text, _LINE_UNITS)
                values = {"text": text, "date": self._day(fact.said_at), "id": str(fact.id)}
                yield Line(f"f{fact.id}", "memory.fact", values)

    def _synopses(self, here: ScopeMemory) -> Iterator[Line]:
        for synopsis in reversed(here.synopses):
            began, ended = self._day(synopsis.began_at), self._day(synopsis.ended_at)
            dates = began if began == ended else f"{began} – {ended}"
            first, *_ = synopsis.text.splitlines() or [""]
            text = _shortened(first, _LINE_UNITS)
            values = {"text": text, "dates": dates, "id": str(synopsis.id)}
            yield Line(f"s{synopsis.id}", "memory.synopsis", values)

    def _documents(self, here: ScopeMemory) -> Iterator[Line]:
        known = sorted(documents(here).values(), key=lambda document: -document.added_at)
        for document in known:
            values = {"name": document.title, "date": self._day(document.added_at)}
            yield Line(f"d{document.key}", "memory.document", values)

    def _refused(self, messages: Sequence[Message]) -> Iterator[Line]:
        for message in reversed(messages):
            text = _shortened(message.text, _LINE_UNITS)
            values = {"text": text, "date": self._day(message.sent_at)}
            yield Line(f"r{message.seq}", "memory.refused", values)

    def _labelled(self, value: object) -> Iterator[str]:
        """Give each field of a state that is known, with its label."""
        fields = value.items() if isinstance(value, dict) else ()
        for name, content in fields:
            if isinstance(content, dict):
                yield from self._labelled(content)
            elif isinstance(content, list):
                if content:
                    yield f"{self._label(name)}: {', '.join(map(str, content))}"
            elif content is not None and str(content).strip().lower() not in _SAYS_NOTHING:
                yield f"{self._label(name)}: {content}"

    def _label(self, name: str) -> str:
        """Return the catalogue's label; the name of a field that only the operator knows."""
        key = f"state.{name}"
        if self._sentences.has(key):
            return self._sentences.text(self._language, key)
        return name.replace("_", " ")

    def _day(self, at: float) -> str:
        return self._sentences.day(self._language, at)


def _shortened(text: str, max_units: int) -> str:
    head = utf16_slice(text, 0, max_units)
    return text if head == text else f"{head.rstrip('�')}…"
