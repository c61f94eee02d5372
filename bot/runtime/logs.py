"""Logs: one line an event, as JSON or in colors, with conversation and turn in each.

No line holds the text of a message, or of an exception, which may quote one. Tokens and keys are
removed from what libraries log. Unexpected errors may go to a Sentry server, also without texts,
local variables and log lines. Its SDK takes time and memory, so it is imported only then.
"""

import hashlib
import hmac
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from traceback import TracebackException
from typing import Any

import orjson
import structlog
from structlog.typing import EventDict, ExcInfo, WrappedLogger

from config.settings import Settings
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_CHATTY = ("httpx", "httpcore", "httpx2", "httpcore2", "openai", "telegram", "uvicorn", "asyncio")
_MIN_SECRET_CHARS = 6


class Redaction:
    """Replaces secrets everywhere in a log line, tracebacks included."""

    def __init__(self, secrets: Iterable[str]) -> None:
        long_enough = {secret for secret in secrets if len(secret) >= _MIN_SECRET_CHARS}
        # Longer ones first: a secret may be part of another one, whose rest must not stay.
        self._secrets = sorted(long_enough, key=len, reverse=True)

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """Clean one event; keys that begin with "_" are structlog's own."""
        for key, value in event.items():
            if not key.startswith("_"):
                event[key] = self._clean(value)
        return event

    def _clean(self, value: object) -> object:
        match value:
            case None | bool() | int() | float():
                return value
            case Mapping():
                return {self._clean(str(key)): self._clean(item) for key, item in value.items()}
            case list() | tuple() | set() | frozenset():
                return [self._clean(item) for item in value]
        text = str(value)
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        # A lone surrogate in a person's text must not cost us the line.
        return text.encode("utf-8", "backslashreplace").decode()


def short_name(secret: str, conversation: Scope) -> str:
    """Return eight hexadecimal digits, which nobody without the secret can compute from the id."""
    message = f"conversation {conversation.tag}".encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()[:8]


def traceback_without_texts(exc_info: ExcInfo) -> str:
    """Return a traceback with the classes of its exceptions, and not with their texts."""
    return "".join(_lines(TracebackException(*exc_info))).rstrip()


def _lines(error: TracebackException) -> Iterator[str]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause:
        yield from _lines(cause)
    yield "Traceback (most recent call last):\n"
    yield from error.stack.format()
    yield f"{error.exc_type.__name__ if error.exc_type else 'an exception'}\n"
    for each in error.exceptions or ():
        yield from _lines(each)


def _first_line_of_asyncio(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Drop what asyncio adds to an event: the `repr` of a task, with that of its exception."""
    if event["_record"].name == "asyncio":
        event["event"] = str(event["event"]).partition("\n")[0]
    return event


def configure_logs(level: str, secrets: Iterable[str]) -> None:
    """Send all logs of the process to standard output: in colors on a terminal, else as JSON."""
    is_terminal = sys.stdout.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(traceback_without_texts),
        Redaction(secrets),
    ]
    renderer: structlog.typing.Processor = (
        # https://no-color.org
        structlog.dev.ConsoleRenderer(colors=not os.environ.get("NO_COLOR"))
        if is_terminal
        else structlog.processors.JSONRenderer(
            serializer=lambda event, **_: orjson.dumps(event, default=str).decode()
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_first_line_of_asyncio, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _CHATTY:
        # httpx logs URLs, and Telegram's URLs hold the token.
        logging.getLogger(name).setLevel(logging.WARNING)


REPORTS_NEED = "sentry-sdk"
"""What `SENTRY_DSN` needs."""
_CLOSE_S = 1.0
_KEPT = frozenset(
    {"event_id", "timestamp", "platform", "level", "logger", "tags", "sdk"}
    | {"environment", "release"}
)
_KEPT_OF_FRAME = ("filename", "function", "lineno")


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

    def stop(self) -> None:
        """Send what is left, for at most a second."""
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
