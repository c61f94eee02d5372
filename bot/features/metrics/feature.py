"""The bot's Prometheus metrics, in a registry of their own.

Labels are fixed words. No id and no text of a person becomes a label.

`/metrics` answers callers with the token. Without one, it answers callers on this machine. On a
platform every call comes through a router, so without a token every call is refused there.
"""

import hmac
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.feature import Feature, Services
from bot.features.metrics.settings import MetricsSettings
from bot.model.call import CallReport
from bot.turn.observers import (
    Answered,
    Event,
    FieldsRefused,
    GaveUp,
    PartSent,
    TurnEnded,
    UpdateHandled,
)
from config.values import secret_of
from memory.memory import Memory
from memory.store.errors import StoreError

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180)


def feature(services: Services) -> Feature:
    """Return the feature."""
    settings, metrics = services.own(MetricsSettings), Metrics()
    token, on_platform = secret_of(settings.metrics_token), settings.platform is not None
    page = metrics_route(metrics, services.memory, token, on_platform=on_platform)
    return Feature(name="metrics", observers=[metrics.observe], routes=[page])


class Metrics:
    """All counters and histograms of one process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        for collector in (GCCollector, PlatformCollector, ProcessCollector):
            collector(registry=registry)
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, buckets=_SECONDS, registry=registry)
        self.updates = counter(
            "ricordo_updates",
            "Updates from Telegram by outcome; Telegram sends a refused one again.",
            ["outcome"],
        )
        self.turns = counter(
            "ricordo_turns",
            "Turns by outcome: closed, or the name of the error; apologies are counted apart, too.",
            ["outcome"],
        )
        self.phase_seconds = histogram(
            "ricordo_phase_seconds",
            "Seconds of a turn by phase; the phase turn is the whole turn.",
            ["phase"],
        )
        self.model_calls = counter(
            "ricordo_model_calls",
            "Calls to models by kind (answer, internal, embedding), model and outcome.",
            ["kind", "model", "outcome"],
        )
        self.model_seconds = histogram(
            "ricordo_model_seconds",
            "Seconds of calls to models by kind and model.",
            ["kind", "model"],
        )
        self.tokens = counter(
            "ricordo_tokens",
            "Tokens that model servers billed: prompt, cached (a part of prompt), completion, "
            "reasoning (a part of completion).",
            ["kind", "model", "direction"],
        )
        self.sends = counter(
            "ricordo_sends",
            "Messages sent to Telegram by outcome; a refusal counts under the name of its error.",
            ["outcome"],
        )
        self.domain_refusals = counter(
            "ricordo_domain_refusals",
            "Refused updates of the fields of a `knowledge_base`, by what sent them.",
            ["source"],
        )
        self.round_trips = gauge(
            "ricordo_redis_round_trips",
            "Round trips to Redis since this process started; a pipeline counts once.",
        )
        self.wake_ups = gauge(
            "ricordo_ready_queue_wake_ups",
            "Wake-ups in the ready queue: conversations with work that is not finished.",
        )

    def observe(self, event: Event) -> None:
        """Count one step."""
        match event:
            case UpdateHandled():
                self.updates.labels(event.outcome).inc()
            case Answered():
                self.phase_seconds.labels("answer").observe(event.seconds)
            case PartSent():
                self.sends.labels(event.outcome).inc()
            case GaveUp():
                self.turns.labels("apologised").inc()
            case FieldsRefused():
                self.domain_refusals.labels(event.source).inc()
            case TurnEnded():
                self.turns.labels(event.outcome).inc()
                self.phase_seconds.labels("turn").observe(event.seconds)
            case CallReport(kind=kind, which=which, usage=usage):
                self.model_calls.labels(kind, which, event.outcome).inc()
                self.model_seconds.labels(kind, which).observe(event.seconds)
                for direction, tokens in (
                    ("prompt", usage.prompt_tokens),
                    ("cached", usage.cached_tokens),
                    ("completion", usage.completion_tokens),
                    ("reasoning", usage.reasoning_tokens),
                ):
                    self.tokens.labels(kind, which, direction).inc(tokens)


_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_FORWARDED = ("forwarded", "via", "x-real-ip", "true-client-ip", "cf-connecting-ip")
"""Headers that a proxy adds. Headers that begin with `x-forwarded-` count too."""
_HOSTS = ("localhost", "127.0.0.1", "::1")


def metrics_route(
    metrics: Metrics, memory: Memory, token: str | None, *, on_platform: bool = False
) -> Route:
    """Return the route of the page; `token` is the bearer token that callers must send."""

    async def page(request: Request) -> Response:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        is_known = token and hmac.compare_digest(given.encode(), token.encode())
        if not (is_known if token else not on_platform and _is_local(request)):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        metrics.round_trips.set(memory.client.round_trips)
        try:
            metrics.wake_ups.set(await memory.client.call("XLEN", memory.keys.ready_queue))
        except StoreError:
            metrics.wake_ups.set(float("nan"))
        return Response(generate_latest(metrics.registry), media_type=_FORMAT)

    return Route("/metrics", page)


def _is_local(request: Request) -> bool:
    """Return whether a process of this machine asks, and asks this machine by its own name.

    A proxy on this machine asks for another caller, and its headers say so. A page in a browser
    here may have a name that leads to this machine (DNS rebinding), and asks by that name.
    """
    if any(name.startswith("x-forwarded") or name in _FORWARDED for name in request.headers):
        return False
    try:
        caller = request.client.host if request.client else ""
        return request.url.hostname in _HOSTS and ip_address(caller).is_loopback
    except ValueError:
        return False
