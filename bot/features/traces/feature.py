"""What traces and error reports add to the bot."""

import os

import structlog
from dotenv import dotenv_values

from bot.feature import Feature, Services
from bot.features.traces.error_reports import reporting_errors
from bot.features.traces.settings import TraceSettings
from bot.runtime.logs import how_to_install

log = structlog.get_logger(__name__)

TRACES_NEED = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
"""What `OTEL_EXPORTER_OTLP_ENDPOINT` needs."""


def feature(services: Services) -> Feature:
    """Return the feature; without its packages it observes and reports nothing."""
    settings = services.own(TraceSettings)
    if settings.sentry_dsn is not None:
        reporting = reporting_errors(settings.sentry_dsn.get_secret_value())
        services.closing.enter_context(reporting)
    if settings.otel_exporter_otlp_endpoint is None:
        return Feature(name="traces")
    share_variables()
    try:
        from bot.features.traces.traces import Traces  # noqa: PLC0415 - an optional extra
    except ImportError:
        log.warning("no traces", advice=how_to_install(TRACES_NEED))
        return Feature(name="traces")
    traces = Traces(settings.otel_exporter_otlp_endpoint, services.name_of)
    services.closing.callback(traces.close)
    return Feature(name="traces", observers=(traces.observe,))


def share_variables() -> None:
    """Put the SDK's variables of `.env` into the environment, because the SDK reads only that."""
    try:
        in_file = dotenv_values(".env")
    except (OSError, UnicodeDecodeError):
        return
    for name, value in in_file.items():
        if name.startswith("OTEL_") and value:
            os.environ.setdefault(name, value)
