"""Refusals of calls.

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


def flood(retry_after_s: int) -> ApiError:
    """Return the refusal of too many requests; the client must wait for so many seconds."""
    text = f"Too Many Requests: retry after {retry_after_s}"
    return ApiError(429, text, retry_after=retry_after_s)
