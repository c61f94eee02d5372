"""What an operator's monitoring gets: are the packages installed, and does the collector answer."""

import asyncio
from importlib.util import find_spec
from urllib.parse import urlsplit

from bot.check.rows import Row, Rows
from bot.metrics.monitoring import REPORTS_NEED, TRACES_NEED, how_to_install, share_variables
from config.settings import Settings

_LIMIT_S = 15.0


async def check_monitoring(settings: Settings) -> Rows:
    """Yield a row for traces and one for error reports, if they are on."""
    if settings.otel_exporter_otlp_endpoint is not None:
        yield await _traces_row(settings.otel_exporter_otlp_endpoint)
    if settings.sentry_dsn is not None:
        what, host = "Error reports", urlsplit(settings.sentry_dsn.get_secret_value()).hostname
        if find_spec("sentry_sdk") is None:
            yield Row(what, "warn", "package missing", how_to_install(REPORTS_NEED))
        else:
            yield Row(what, "ok", f"on, to {host}; not tested, because that would report an error")


async def _traces_row(endpoint: str) -> Row:
    """Send a request without spans, as the bot would send it."""
    what, host = "Traces", urlsplit(endpoint).hostname
    share_variables()
    try:
        from bot.metrics.traces import exporter_to  # noqa: PLC0415 - an optional extra
    except ImportError:
        return Row(what, "warn", "packages missing: no traces", how_to_install(TRACES_NEED))
    try:
        async with asyncio.timeout(_LIMIT_S):
            answer = await asyncio.to_thread(exporter_to(endpoint).export, [])
    except TimeoutError:
        answer = None
    if answer is not None and answer.name == "SUCCESS":
        return Row(what, "ok", f"the collector at {host} takes them")
    advice = "look at OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS"
    return Row(what, "warn", f"no collector for HTTP answers at {host}", advice)
