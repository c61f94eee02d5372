"""How the Bot API says no: one class for each status that it answers with.

    ApiError                any answer that is not ok
    ├── BadRequestError     400: the parameters are wrong, or what they name is not there
    ├── ForbiddenError      403: the bot may not write here (blocked, kicked, never started)
    ├── NotFoundError       404: no such method, or no such file
    ├── ConflictError       409: getUpdates against a webhook or another getUpdates
    └── FloodError          429: too many requests, wait `retry_after` seconds

The words are Telegram's own, from the source of its Bot API server, because clients tell refusals
apart by their words.
"""

import contextlib
from collections.abc import Iterator


class ApiError(Exception):
    """Raised by whatever refuses a call; the HTTP side turns it into an answer."""

    def __init__(self, status: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


class BadRequestError(ApiError):
    """Raised for parameters that make no sense and for chats, messages and files not there."""

    def __init__(self, why: str, **parameters: int) -> None:
        super().__init__(400, f"Bad Request: {why}", **parameters)
        self.why = why


class ForbiddenError(ApiError):
    """Raised when the bot may not write to the chat."""

    def __init__(self, why: str) -> None:
        super().__init__(403, f"Forbidden: {why}")


class NotFoundError(ApiError):
    """Raised for an unknown method or file."""

    def __init__(self, why: str = "") -> None:
        super().__init__(404, f"Not Found: {why}" if why else "Not Found")


class ConflictError(ApiError):
    """Raised when two ways of getting updates meet."""

    def __init__(self, why: str) -> None:
        super().__init__(409, f"Conflict: {why}")


class FloodError(ApiError):
    """Raised for too many requests; `retry_after_s` is what the client must wait."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            429, f"Too Many Requests: retry after {retry_after_s}", retry_after=retry_after_s
        )


@contextlib.contextmanager
def while_reading(what: str) -> Iterator[None]:
    """Say of a bad request raised inside which part of the call could not be read."""
    try:
        yield
    except BadRequestError as error:
        raise BadRequestError(f"can't parse {what}: {error.why}") from None
