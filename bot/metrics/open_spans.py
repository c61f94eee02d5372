"""The span that a task works on; spans of its steps, and of tasks that it starts, stand below it.

Passed by context, like the fields of log lines. Imported only if traces are on.
"""

from contextvars import ContextVar
from dataclasses import dataclass

from opentelemetry.context import Context
from opentelemetry.trace import Span, StatusCode, set_span_in_context

_SUCCESS = frozenset({"closed", "sent", "accepted", "learned", "ok"})


@dataclass(slots=True)
class _Open:
    """A span that this task works on, and the one around it."""

    span: Span
    around: "_Open | None"


_open: ContextVar[_Open | None] = ContextVar("open_span", default=None)


def around() -> Context:
    """Return the span that this task works on as a context; an empty one begins a new trace."""
    current = _open.get()
    return Context() if current is None else set_span_in_context(current.span, Context())


def begin(span: Span) -> None:
    """Work on this span until `end`."""
    _open.set(_Open(span, _open.get()))


def end(outcome: str) -> None:
    """End the span that this task works on, and work on the one around it."""
    if (current := _open.get()) is not None:
        _open.set(current.around)
        note(current.span, outcome)
        current.span.end()


def note(span: Span, outcome: str) -> None:
    """Note how a step ended. An error has only its name: its text may hold anything."""
    span.set_attribute("ricordo.outcome", outcome)
    if outcome not in _SUCCESS:
        span.set_attribute("error.type", outcome)
        span.set_status(StatusCode.ERROR)
