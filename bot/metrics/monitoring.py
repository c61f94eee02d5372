"""Starts traces and error reports for an operator's monitoring, each if its setting is set.

The packages for it are an optional extra. If they are missing, the bot says so and runs on.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog
from dotenv import dotenv_values

from bot.model.call_report import CallReport
from bot.turn.observers import Event
from config.settings import Settings
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

TRACES_NEED = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
"""What `OTEL_EXPORTER_OTLP_ENDPOINT` needs."""
REPORTS_NEED = "sentry-sdk"
"""What `SENTRY_DSN` needs."""


class Watcher(Protocol):
    """Observes the steps of the bot and the calls to models."""

    def observe(self, event: Event, /) -> None:
        """Note one step."""

    def model_called(self, report: CallReport, /) -> None:
        """Note one call to a model that has ended."""


@contextmanager
def open_traces(settings: Settings, name: Callable[[Scope], str]) -> Iterator[tuple[Watcher, ...]]:
    """Give what makes traces while the block lasts; () if they are off or cannot be made.

    `name` hashes a conversation, so that its id does not leave.
    """
    if settings.otel_exporter_otlp_endpoint is None:
        yield ()
        return
    share_variables()
    try:
        from bot.metrics.traces import Traces  # noqa: PLC0415 - takes time and memory
    except ImportError:
        log.warning("no traces", advice=how_to_install(TRACES_NEED))
        yield ()
        return
    traces = Traces(settings.otel_exporter_otlp_endpoint, name)
    try:
        yield (traces,)
    finally:
        traces.close()


@contextmanager
def reporting_errors(settings: Settings) -> Iterator[None]:
    """Report what the log calls an error while the block lasts, and an error that ends it."""
    if settings.sentry_dsn is None:
        yield
        return
    try:
        from bot.metrics.error_reports import ErrorReports  # noqa: PLC0415 - as above
    except ImportError:
        log.warning("no error reports", advice=how_to_install(REPORTS_NEED))
        yield
        return
    reports = ErrorReports(settings.sentry_dsn.get_secret_value())
    logging.getLogger().addHandler(reports)
    try:
        yield
    except Exception as error:
        reports.report(error, __name__)
        raise
    finally:
        logging.getLogger().removeHandler(reports)
        reports.stop()


def how_to_install(packages: str) -> str:
    """Return what to do if packages are missing."""
    return f"install the packages: pip install {packages}"


def share_variables() -> None:
    """Put the SDK's variables of `.env` into the environment, because the SDK reads only that."""
    try:
        in_file = dotenv_values(".env")
    except (OSError, UnicodeDecodeError):
        return
    for name, value in in_file.items():
        if name.startswith("OTEL_") and value:
            os.environ.setdefault(name, value)
