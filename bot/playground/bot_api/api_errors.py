"""Refusals of the Bot API: one class for each status.

    ApiError                any answer that is not ok
    ├── BadRequestError     400: the parameters are wrong, or what they name does not exist
    └── NotFoundError       404: no such method or file

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
        self.why = why


class NotFoundError(ApiError):
    """Raised for an unknown method or file."""

    def __init__(self, why: str = "") -> None:
        super().__init__(404, f"Not Found: {why}" if why else "Not Found")
