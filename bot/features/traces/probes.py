"""Are the packages for traces and error reports installed, and does the collector answer."""

import asyncio
from importlib.util import find_spec
from urllib.parse import urlsplit

from bot.features.traces.feature import REPORTS_NEED, TRACES_NEED, how_to_install, share_variables
from bot.features.traces.settings import TraceSettings
from bot.probe import Probe, Row, Rows
from config.values import secret_of

_WHAT, _REPORTS = "Traces", "Error reports"
_LIMIT_S = 15.0


async def _traces(settings: TraceSettings) -> Rows:
    endpoint = settings.otel_exporter_otlp_endpoint or ""
    host = urlsplit(endpoint).hostname
    share_variables()
    try:
        from bot.features.traces.traces import exporter_to  # noqa: PLC0415 - an optional extra
    except ImportError:
        yield Row(_WHAT, "warn", "packages missing: no traces", how_to_install(TRACES_NEED))
        return
    try:
        async with asyncio.timeout(_LIMIT_S):
            answer = await asyncio.to_thread(exporter_to(endpoint).export, [])
    except TimeoutError:
        answer = None
    if answer is not None and answer.name == "SUCCESS":
        yield Row(_WHAT, "ok", f"the collector at {host} takes them")
        return
    advice = "look at OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS"
    yield Row(_WHAT, "warn", f"no collector for HTTP answers at {host}", advice)


async def _reports(settings: TraceSettings) -> Rows:
    if find_spec("sentry_sdk") is None:
        yield Row(_REPORTS, "warn", "package missing", how_to_install(REPORTS_NEED))
    elif dsn := secret_of(settings.sentry_dsn):
        seen = f"on, to {urlsplit(dsn).hostname}; not tested, because that would report an error"
        yield Row(_REPORTS, "ok", seen)


PROBES = (
    Probe(_WHAT, _traces, lambda settings: settings.otel_exporter_otlp_endpoint),
    Probe(_REPORTS, _reports, lambda settings: settings.sentry_dsn),
)
