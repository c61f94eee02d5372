"""The bot's Prometheus metrics, in a registry of their own.

Labels are fixed words, so that nobody's id or text becomes one.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from bot.model.call_report import CallReport
from bot.turn.observers import Answered, Event, GaveUp, PartSent, TurnEnded

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180)


class Metrics:
    """All counters and histograms of one process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        for collector in (GCCollector, PlatformCollector, ProcessCollector):
            collector(registry=registry)
        self.updates = Counter(
            "ricordo_updates",
            "Updates from Telegram; not_taken stays with Telegram and comes again.",
            ["outcome"],
            registry=registry,
        )
        self.turns = Counter(
            "ricordo_turns",
            "Turns by how their reply was delivered.",
            ["outcome"],
            registry=registry,
        )
        self.phase_seconds = Histogram(
            "ricordo_phase_seconds",
            "Time of a turn's phases; turn is all of it.",
            ["phase"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.model_calls = Counter(
            "ricordo_model_calls",
            "Calls of models by kind (answer, internal, embedding), model and outcome.",
            ["kind", "model", "outcome"],
            registry=registry,
        )
        self.model_seconds = Histogram(
            "ricordo_model_seconds",
            "Time of calls of models by kind and model.",
            ["kind", "model"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.tokens = Counter(
            "ricordo_tokens",
            "Tokens as servers billed them: prompt, cached (a part of prompt), completion, "
            "reasoning (a part of completion).",
            ["kind", "model", "direction"],
            registry=registry,
        )
        self.sends = Counter(
            "ricordo_sends",
            "Messages to Telegram by outcome; refusals by the name of the error.",
            ["outcome"],
            registry=registry,
        )
        self.learned = Counter(
            "ricordo_learned",
            "What learning did: messages and records embedded, entries written.",
            ["what"],
            registry=registry,
        )
        self.round_trips = Gauge(
            "ricordo_redis_round_trips",
            "Round trips to Redis since the start; a pipeline counts once.",
            registry=registry,
        )
        self.waiting = Gauge(
            "ricordo_waiting_bells", "Conversations with mail that ring now.", registry=registry
        )

    def model_called(self, report: CallReport) -> None:
        """Count one call of a model: its outcome, its time and its tokens."""
        self.model_calls.labels(report.kind, report.which, report.outcome).inc()
        self.model_seconds.labels(report.kind, report.which).observe(report.seconds)
        for direction, tokens in (
            ("prompt", report.usage.prompt_tokens),
            ("cached", report.usage.cached_tokens),
            ("completion", report.usage.completion_tokens),
            ("reasoning", report.usage.reasoning_tokens),
        ):
            self.tokens.labels(report.kind, report.which, direction).inc(tokens)

    def observe(self, event: Event) -> None:
        """Count one step of a turn."""
        match event:
            case Answered():
                self.phase_seconds.labels("answer").observe(event.seconds)
            case PartSent():
                self.sends.labels(event.outcome).inc()
            case GaveUp():
                self.turns.labels("apologised").inc()
            case TurnEnded():
                self.turns.labels(event.outcome).inc()
                self.phase_seconds.labels("turn").observe(event.seconds)

    def exposition(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self.registry)
