"""Logs: one line an event, JSON or pretty, with conversation and turn on each.

Never message texts; tokens and keys are taken out of whatever a library says.
"""

import logging
import sys
from collections.abc import Iterable

import orjson
import structlog
from structlog.typing import EventDict, WrappedLogger

_CHATTY = ("httpx", "httpcore", "httpx2", "openai", "telegram", "uvicorn", "asyncio")
_LEAST_SECRET = 6


class Redaction:
    """Replaces secrets in every string of a log line, tracebacks included."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = [secret for secret in secrets if len(secret) >= _LEAST_SECRET]

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """Clean one event."""
        for key, value in event.items():
            if isinstance(value, str):
                event[key] = self._clean(value)
        return event

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text


def configure_logs(level: str, style: str, secrets: Iterable[str]) -> None:
    """Send all logs of the process to standard output; `style` is auto, json or pretty."""
    pretty = style == "pretty" or (style == "auto" and sys.stdout.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        Redaction(secrets),
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer()
        if pretty
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
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _CHATTY:
        # httpx logs URLs, and Telegram's URLs hold the token.
        logging.getLogger(name).setLevel(logging.WARNING)
