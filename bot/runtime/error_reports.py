"""Unexpected errors for a Sentry server: type, place and reference id, and nothing that was said.

The text of an exception may hold anything, so it is left out, like local variables and log lines.
The SDK is imported only if error reports are on: it takes time and memory.
"""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from typing import Any

import structlog

from config.settings import Settings

log = structlog.get_logger(__name__)

REPORTS_NEED = "sentry-sdk"
"""What `SENTRY_DSN` needs."""
_CLOSE_S = 1.0
_MAX_CAUSES = 10
_MAX_FRAMES = 100
_KEPT = frozenset(
    {"event_id", "timestamp", "platform", "level", "logger", "exception", "tags", "sdk"}
    | {"environment", "release"}
)


@contextmanager
def reporting_errors(settings: Settings) -> Iterator[None]:
    """Report what the log calls an error while the block lasts, and an error that ends it."""
    if settings.sentry_dsn is None:
        yield
        return
    try:
        reports = ErrorReports(settings.sentry_dsn.get_secret_value())
    except ImportError:
        log.warning("no error reports", advice=how_to_install(REPORTS_NEED))
        yield
        return
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


class ErrorReports(logging.Handler):
    """Reports each error of the log that has an exception; a thread of its own sends them."""

    def __init__(self, dsn: str) -> None:
        import sentry_sdk  # noqa: PLC0415 - see above

        super().__init__(logging.ERROR)
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
        values = [_described(each) for each in _chain(error)]
        event: Any = {"level": "error", "logger": logger, "exception": {"values": values[::-1]}}
        if reference:
            event["tags"] = {"reference": reference}
        self._client.capture_event(event)

    def stop(self) -> None:
        """Send what is left, for at most a second."""
        self._client.close(timeout=_CLOSE_S)


def _scrubbed(event: Any, _: object) -> Any:
    """Drop every field that we did not fill ourselves; a newer SDK may add others."""
    return {name: value for name, value in event.items() if name in _KEPT and value}


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, then its cause, and so on."""
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _described(error: BaseException) -> dict[str, object]:
    """Return the type of an error and where it was raised, in Sentry's form."""
    frames = [
        {
            "filename": _short(frame.f_code.co_filename),
            "function": frame.f_code.co_name,
            "lineno": line,
        }
        for frame, line in walk_tb(error.__traceback__)
    ]
    kind = type(error)
    return {
        "type": kind.__name__,
        "module": kind.__module__,
        "stacktrace": {"frames": frames[-_MAX_FRAMES:]},
    }


def _short(path: str) -> str:
    """Return a path without the folder in which the bot, or its packages, are installed."""
    below = [folder for folder in sys.path if folder and path.startswith(folder + os.sep)]
    return path.removeprefix(max(below, key=len) + os.sep) if below else Path(path).name
