"""Logs: one line an event, as JSON or in colors, with conversation and turn in each.

No line holds the text of a message, or of an exception, which may quote one. Tokens and keys are
removed from what libraries log.
"""

import hashlib
import hmac
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from traceback import TracebackException

import orjson
import structlog
from structlog.typing import EventDict, ExcInfo, WrappedLogger

from memory.store.keys import Scope

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
