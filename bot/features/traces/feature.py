"""What traces and error reports add to the bot.

Reports of unexpected errors go to a Sentry server: types and places in code, no texts. Its SDK
takes time and memory, so it is imported only if `SENTRY_DSN` is set.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

import structlog
from dotenv import dotenv_values

from bot.feature import Feature, Services
from bot.features.traces.settings import TraceSettings
from config.values import secret_of

log = structlog.get_logger(__name__)

TRACES_NEED = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
"""What `OTEL_EXPORTER_OTLP_ENDPOINT` needs."""
REPORTS_NEED = "sentry-sdk"  # what `SENTRY_DSN` needs
_CLOSE_S = 1.0
_KEPT = frozenset(
    {"event_id", "timestamp", "platform", "level", "logger", "tags", "sdk"}
    | {"environment", "release"}
)
_KEPT_OF_FRAME = ("filename", "function", "lineno")


def feature(services: Services) -> Feature:
    """Return the feature; without its packages it observes and reports nothing."""
    settings = services.own(TraceSettings)
    if dsn := secret_of(settings.sentry_dsn):
        try:
            reports = ErrorReports(dsn)
        except ImportError:
            log.warning("no error reports", advice=how_to_install(REPORTS_NEED))
        else:
            logging.getLogger().addHandler(reports)
            services.closing.push(reports.end)
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


def how_to_install(packages: str) -> str:
    """Return what to do if packages are missing."""
    return (
        f"install {packages}: pip install --require-hashes -r requirements-traces.txt "
        "(a container: docker build --build-arg REQUIREMENTS=requirements-traces.txt .)"
    )


class ErrorReports(logging.Handler):
    """Reports each error of the log that has an exception; a thread of its own sends them."""

    def __init__(self, dsn: str) -> None:
        import sentry_sdk  # noqa: PLC0415 - see above
        from sentry_sdk.utils import event_from_exception  # noqa: PLC0415

        super().__init__(logging.ERROR)
        self._described = event_from_exception
        self._client = sentry_sdk.Client(
            dsn,
            # Otherwise the SDK would run git, or send the name of this machine.
            release=os.environ.get("SENTRY_RELEASE", ""),
            server_name="",
            before_send=_scrubbed,
            default_integrations=False,
            auto_enabling_integrations=False,
            auto_session_tracking=False,
            include_local_variables=False,
            include_source_context=False,
            max_breadcrumbs=0,
            send_client_reports=False,
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Report the exception of a line; one without an exception is not reported."""
        # structlog has already made a text of the exception. While it is handled, `sys` has it.
        error = (record.exc_info or sys.exc_info())[1]
        if error is not None:
            fields = record.msg if isinstance(record.msg, Mapping) else {}
            self.report(error, record.name, str(fields.get("reference", "")))

    def report(self, error: BaseException, logger: str, reference: str = "") -> None:
        """Report an error and what caused it; `reference` is the id that the person was told."""
        event, hint = self._described(error, client_options=self._client.options)
        event["logger"] = logger
        if reference:
            event["tags"] = {"reference": reference}
        self._client.capture_event(event, hint)

    def end(self, _: object, error: object, __: object) -> None:
        """Report an error that ends the bot; send what is left, for at most a second."""
        if isinstance(error, Exception):
            self.report(error, __name__)
        logging.getLogger().removeHandler(self)
        self._client.close(timeout=_CLOSE_S)


def _scrubbed(event: Any, _: object) -> Any:
    """Keep only the types of errors and places in code; a newer SDK may add other fields."""
    errors = [
        {
            "type": each["type"],
            "module": each["module"],
            "stacktrace": {
                "frames": [
                    {name: frame.get(name) for name in _KEPT_OF_FRAME}
                    for frame in each.get("stacktrace", {}).get("frames", ())
                ]
            },
        }
        for each in event["exception"]["values"]
    ]
    kept = {name: value for name, value in event.items() if name in _KEPT and value}
    return kept | {"exception": {"values": errors}}
