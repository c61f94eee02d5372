"""Traces follow an update through its turn to the delivery and to learning, across processes.

Spans hold fixed words, names of models and tools, counts, and hashes of conversations. They never
hold words, names or ids of people. The span that a task works on is passed by context, like the
fields of log lines. Imported only if traces are on: OpenTelemetry takes time and memory.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from bot.model.call import CallReport
from bot.telegram.updates import readable, trace_of_update
from bot.turn.observers import (
    AgentRan,
    Event,
    LearningBegan,
    LearningEnded,
    PartSent,
    TurnBegan,
    TurnEnded,
    UpdateArrived,
    UpdateHandled,
)
from memory.queue.mailbox import Entry
from memory.store.keys import Scope

_SERVICE = "ricordo"
_EXPORT_S = 5.0  # for one request to the collector, if `OTEL_EXPORTER_OTLP_TIMEOUT` is not set
_CLOSE_S = 1.5

_TRACE_PARENT = TraceContextTextMapPropagator()
_CONVERSATION = "gen_ai.conversation.id"
_FIELD = "traceparent"  # of https://www.w3.org/TR/trace-context/

Attributes = Mapping[str, str | int]

_SUCCESS = frozenset({"closed", "sent", "accepted", "learned", "ok"})

_open: ContextVar[tuple[Span, ...]] = ContextVar("open_spans", default=())
"""The span that this task works on, behind those around it."""


def _around() -> Context:
    """Return the span that this task works on as a context; an empty one begins a new trace."""
    return set_span_in_context(_open.get()[-1], Context()) if _open.get() else Context()


def _begin_span(span: Span) -> None:
    """Work on this span until `end`."""
    _open.set((*_open.get(), span))


def _end(outcome: str) -> None:
    """End the span that this task works on, and work on the one around it."""
    if spans := _open.get():
        _open.set(spans[:-1])
        _note(spans[-1], outcome)
        spans[-1].end()


def _note(span: Span, outcome: str) -> None:
    """Note how a step ended. An error has only its name: its text may hold anything."""
    span.set_attribute("ricordo.outcome", outcome)
    if outcome not in _SUCCESS:
        span.set_attribute("error.type", outcome)
        span.set_status(StatusCode.ERROR)


@dataclass(slots=True)
class _Intake:
    """The intake of one update; its span begins only if a message is stored."""

    tracer: Tracer
    began_ns: int = field(default_factory=time.time_ns)
    span: Span | None = None

    def __call__(self) -> str:
        """Return the trace for the message that is stored."""
        carrier: dict[str, str] = {}
        self.span = self.span or self.tracer.start_span(
            "intake", Context(), SpanKind.PRODUCER, start_time=self.began_ns
        )
        _TRACE_PARENT.inject(carrier, set_span_in_context(self.span, Context()))
        return carrier.get(_FIELD, "")


def exporter_to(endpoint: str) -> OTLPSpanExporter:
    """Return what sends spans to a collector; it reads login and time limit from the environment.

    It sends one request at a time, and blocks until the answer.
    """
    timeout_s = None if os.environ.get("OTEL_EXPORTER_OTLP_TIMEOUT") else _EXPORT_S
    return OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=timeout_s)


class Traces:
    """Makes spans of the steps that it observes; a thread of its own sends them in batches.

    `endpoint` is the base address of an OTLP collector that takes HTTP. The SDK reads other options
    from its own variables. If the collector is slow, spans are dropped and nothing waits.
    """

    def __init__(self, endpoint: str, name: Callable[[Scope], str]) -> None:
        os.environ.setdefault("OTEL_SERVICE_NAME", _SERVICE)
        self._provider = TracerProvider(resource=Resource.create(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter_to(endpoint)))
        self._tracer = self._provider.get_tracer("ricordo")
        self._name = name  # hashes a conversation

    def close(self) -> None:
        """Send what is left, for at most 1.5 s."""
        # The SDK would wait longer than we allow a process that was asked to end.
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_CLOSE_S)

    def observe(self, event: Event) -> None:
        """Begin, end or add the spans of one step."""
        match event:
            case UpdateArrived():
                trace_of_update.set(_Intake(self._tracer))
            case UpdateHandled():
                intake = trace_of_update.get()
                trace_of_update.set(str)
                if isinstance(intake, _Intake) and intake.span is not None:
                    _note(intake.span, event.outcome)
                    intake.span.end()
            case TurnBegan():
                self._begin_turn(event)
            case AgentRan():
                self._add_run(event)
            case PartSent():
                self._add("deliver", _just(event.seconds), {}, event.outcome, SpanKind.CLIENT)
            case LearningBegan():
                attributes = {_CONVERSATION: self._name(event.conversation)}
                _begin_span(self._tracer.start_span("learning", _around(), attributes=attributes))
            case TurnEnded() | LearningEnded():
                _end(event.outcome)
            case CallReport():
                self._add_call(event)

    def _add_call(self, report: CallReport) -> None:
        """Add the span of one call to a model, named as OpenTelemetry's GenAI conventions say."""
        operation = "embeddings" if report.kind == "embedding" else "chat"
        usage = report.usage
        attributes: Attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": report.model,
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            "ricordo.call": report.kind,
        }
        name, outcome = f"{operation} {report.model}", report.outcome
        self._add(name, _just(report.seconds), attributes, outcome, SpanKind.CLIENT)

    def _begin_turn(self, event: TurnBegan) -> None:
        """Begin a turn as a part of the trace of its first message; it links to the others."""
        opened = event.opened
        parents = [each for each in map(_parent_of, opened.entries) if each is not None]
        attributes: Attributes = {
            _CONVERSATION: self._name(opened.lease.conversation),
            "ricordo.turn.messages": len(opened.entries),
            "ricordo.turn.attempts": opened.attempts,
        }
        first = NonRecordingSpan(parents[0]) if parents else INVALID_SPAN
        parent, links = set_span_in_context(first, Context()), [Link(each) for each in parents[1:]]
        _begin_span(self._tracer.start_span("turn", parent, SpanKind.CONSUMER, attributes, links))

    def _add_run(self, event: AgentRan) -> None:
        began = event.context.now
        self._add("recall", (began, began + event.load_seconds))
        for step in event.context.completed_steps:
            for call, result in zip(step.action.calls, step.results, strict=True):
                # Only tools that ran: the model may make up other names from words of the person.
                if result.began_at:
                    name, times = call.name, (result.began_at, result.ended_at)
                    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
                    outcome = "ToolError" if result.failed else "ok"
                    self._add(f"execute_tool {name}", times, attributes, outcome)

    def _add(
        self,
        name: str,
        times: tuple[float, float],
        attributes: Attributes | None = None,
        outcome: str = "ok",
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        """Add a span below the one that this task works on; `times` are Unix seconds."""
        began_ns, ended_ns = (int(at * 1e9) for at in times)
        span = self._tracer.start_span(name, _around(), kind, attributes, start_time=began_ns)
        _note(span, outcome)
        span.end(ended_ns)


def _just(seconds: float) -> tuple[float, float]:
    """Return when a step began that has just ended, and when it ended; in Unix seconds."""
    ended = time.time()
    return ended - seconds, ended


def _parent_of(entry: Entry) -> SpanContext | None:
    """Return the span of the intake of a message; None if it was not traced."""
    message = readable(entry.body)  # a turn that is given up may hold anything
    carrier = {_FIELD: message.trace if message else ""}
    found = get_current_span(_TRACE_PARENT.extract(carrier, Context())).get_span_context()
    return found if found.is_valid else None
