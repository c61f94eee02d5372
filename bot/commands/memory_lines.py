"""What is remembered as lines of a list: state, facts, synopses, documents. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import orjson

from bot.utf16 import utf16_slice
from memory.documents.library import documents
from memory.notebook.notebook import Notebook

_LINE_UNITS = 220
_STATE_UNITS = 700
_SAYS_NOTHING = ("", "unknown")


@dataclass(frozen=True, slots=True)
class Line:
    """One memory; `code` is kind and id as a button names them, `key` its sentence's."""

    code: str
    key: str
    values: Mapping[str, str] = field(default_factory=dict)


def lines_of(here: Notebook, facts: Notebook) -> list[Line]:
    """Return the running state, current facts, synopses and documents, the newest first each."""
    return [*_state(here), *_facts(facts), *_synopses(here), *_documents(here)]


def _state(here: Notebook) -> Iterator[Line]:
    fields = orjson.loads(here.state) if here.state else {}
    text = "; ".join(_told(fields))
    if text:
        yield Line("x", "memory.state", {"text": _shortened(text, _STATE_UNITS)})


def _facts(facts: Notebook) -> Iterator[Line]:
    for fact in reversed(facts.facts):
        if fact.is_current:
            text = _shortened(fact.text, _LINE_UNITS)
            values = {"text": text, "date": _day(fact.said_at), "id": str(fact.id)}
            yield Line(f"f{fact.id}", "memory.fact", values)


def _synopses(here: Notebook) -> Iterator[Line]:
    for synopsis in reversed(here.synopses):
        began, ended = _day(synopsis.began_at), _day(synopsis.ended_at)
        dates = began if began == ended else f"{began} – {ended}"
        first, *_ = synopsis.text.splitlines() or [""]
        values = {"text": _shortened(first, _LINE_UNITS), "dates": dates, "id": str(synopsis.id)}
        yield Line(f"s{synopsis.id}", "memory.synopsis", values)


def _documents(here: Notebook) -> Iterator[Line]:
    known = sorted(documents(here).values(), key=lambda document: -document.added_at)
    for document in known:
        values = {"name": document.title, "date": _day(document.added_at)}
        yield Line(f"d{document.key}", "memory.document", values)


def _told(value: object) -> Iterator[str]:
    """Give what a state says, field by field, without what it does not know."""
    fields = value.items() if isinstance(value, dict) else ()
    for name, content in fields:
        if isinstance(content, dict):
            yield from _told(content)
        elif isinstance(content, list):
            if content:
                yield f"{_label(name)}: {', '.join(map(str, content))}"
        elif content is not None and str(content).strip().lower() not in _SAYS_NOTHING:
            yield f"{_label(name)}: {content}"


def _label(name: str) -> str:
    return name.replace("_", " ")


def _shortened(text: str, most_units: int) -> str:
    head = utf16_slice(text, 0, most_units)
    return text if head == text else f"{head.rstrip('�')}…"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()
