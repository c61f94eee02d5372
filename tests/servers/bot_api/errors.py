"""Refusals that only tests use.

ApiError                any answer that is not ok (bot/playground/bot_api/errors.py)
├── ForbiddenError      403: the bot may not write here (blocked, kicked, never started)
├── ConflictError       409: getUpdates against a webhook or another getUpdates
└── FloodError          429: too many requests, wait `retry_after` seconds
"""

import contextlib
from collections.abc import Iterator

from bot.playground.bot_api.values import ApiError, BadRequestError


class ForbiddenError(ApiError):
    """Raised when the bot may not write to the chat."""

    def __init__(self, why: str) -> None:
        super().__init__(403, f"Forbidden: {why}")


class ConflictError(ApiError):
    """Raised when polling and a webhook, or two polls, conflict."""

    def __init__(self, why: str) -> None:
        super().__init__(409, f"Conflict: {why}")


class FloodError(ApiError):
    """Raised for too many requests; the client must wait `retry_after_s` seconds."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            429, f"Too Many Requests: retry after {retry_after_s}", retry_after=retry_after_s
        )


@contextlib.contextmanager
def while_reading(what: str) -> Iterator[None]:
    """Add to a bad request which part of the call could not be read."""
    try:
        yield
    except BadRequestError as error:
        raise BadRequestError(f"can't parse {what}: {error.why}") from None
