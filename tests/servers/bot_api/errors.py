"""Refusals of calls.

ApiError                any answer that is not ok
├── BadRequestError     400: the parameters are wrong, or what they name does not exist
├── ForbiddenError      403: the bot may not write here (blocked, kicked, never started)
├── NotFoundError       404: no such method or file
├── ConflictError       409: getUpdates against a webhook or another getUpdates
└── FloodError          429: too many requests, wait `retry_after` seconds

The texts are Telegram's own, from the source of its Bot API server, because clients tell refusals
apart by their texts.
"""


class ApiError(Exception):
    """Raised when a call is refused; the HTTP side turns it into an answer."""

    def __init__(self, status: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


class BadRequestError(ApiError):
    """Raised for parameters that make no sense, and for unknown chats, messages and files."""

    def __init__(self, why: str, **parameters: int) -> None:
        super().__init__(400, f"Bad Request: {why}", **parameters)


class NotFoundError(ApiError):
    """Raised for an unknown method or file."""

    def __init__(self, why: str = "") -> None:
        super().__init__(404, f"Not Found: {why}" if why else "Not Found")


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
