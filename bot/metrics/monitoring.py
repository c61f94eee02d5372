"""Observes the bot for its operator's monitoring, and reports errors if `SENTRY_DSN` is set.

The package for reports is an optional extra. If it is missing, the bot says so and runs on.
"""

import hashlib
import hmac
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog

from bot.model.call_report import CallReport
from bot.turn.observers import Event
from config.settings import Settings
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

REPORTS_NEED = "sentry-sdk"
"""What `SENTRY_DSN` needs."""


class ConversationNames:
    """Short names of conversations, which nobody without the `secret` can compute from ids."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def name(self, conversation: Scope) -> str:
        """Return eight hexadecimal digits."""
        message = f"conversation {conversation.tag}".encode()
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()[:8]


class Watcher(Protocol):
    """Observes the steps of the bot and the calls to models."""

    def observe(self, event: Event, /) -> None:
        """Note one step."""

    def model_called(self, report: CallReport, /) -> None:
        """Note one call to a model that has ended."""


class Watchers:
    """Tells all watchers; more may join until the bot serves."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = list(watchers)

    def join(self, watchers: Iterable[Watcher]) -> None:
        """Add watchers behind the others."""
        self._watchers += watchers

    def observe(self, event: Event) -> None:
        """Tell of one step."""
        for each in self._watchers:
            each.observe(event)

    def model_called(self, report: CallReport) -> None:
        """Tell of one call to a model that has ended."""
        for each in self._watchers:
            each.model_called(report)


@contextmanager
def reporting_errors(settings: Settings) -> Iterator[None]:
    """Report what the log calls an error while the block lasts, and an error that ends it."""
    if settings.sentry_dsn is None:
        yield
        return
    try:
        from bot.metrics.error_reports import ErrorReports  # noqa: PLC0415 - takes time and memory
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
    return (
        f"install {packages}: pip install --require-hashes -r requirements-traces.txt "
        "(a container: docker build --build-arg REQUIREMENTS=requirements-traces.txt .)"
    )
