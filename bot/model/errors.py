"""What can go wrong between us and a model; each class says when.

    ModelError
    ├── ModelUnavailable    no answer now: connection, time limit, 429 after a retry, 5xx
    ├── ModelRefused        the server declines this request as it is (4xx)
    │   └── ContextTooLong  because the prompt is longer than the model takes
    ├── AnswerIncomplete    the answer broke off, twice, or was cut short
    ├── AnswerUnreadable    what should be JSON of one shape is not, twice
    └── NotAModel           what answered does not speak the dialect: a wrong base URL, say

Texts carry no key and nothing that a person wrote; the SDK's own error is the cause.
"""

import json
import re
from http import HTTPStatus

import openai
from pydantic import ValidationError


class ModelError(Exception):
    """Raised when a model gave no usable answer."""


class ModelUnavailable(ModelError):  # noqa: N818 - the names say when
    """Raised when the same request may succeed later."""


class ModelRefused(ModelError):  # noqa: N818
    """Raised when the server will never take this request."""

    def __init__(self, text: str, objection: str = "", status: int = 0) -> None:
        super().__init__(text)
        self._objection = objection  # the server's words, which may quote a person's
        self.status = status

    @property
    def may_concern_parameters(self) -> bool:
        """Whether the request may be taken in a plainer form; key and account are in order."""
        return self.status in _BAD_REQUEST

    def objects_to(self, parameter: str) -> bool:
        """Whether the server named that parameter when it declined."""
        return parameter in self._objection


class ContextTooLong(ModelRefused):
    """Raised when the prompt is longer than the model takes."""


class AnswerIncomplete(ModelError):  # noqa: N818
    """Raised when an answer began and was not finished."""


class AnswerUnreadable(ModelError):  # noqa: N818
    """Raised when an answer that should have a shape, or any text, has none."""


class NotAModel(ModelError):  # noqa: N818
    """Raised when the answer is not what the dialect describes."""


_BAD_REQUEST = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY}
)
FOREIGN = (
    openai.OpenAIError,
    json.JSONDecodeError,
    UnicodeDecodeError,
    ValidationError,
    AttributeError,
    IndexError,
    TypeError,
)
"""What a call may raise: sparse servers make the SDK stumble over what it expects to be there."""

_UNAVAILABLE = (
    openai.APIConnectionError,
    openai.ConflictError,
    openai.InternalServerError,
    openai.RateLimitError,
)
_TOO_LONG = re.compile(r"context[_ ](length|size|window)", re.IGNORECASE)
"""The code of api.openai.com, and the words of servers that have no code for it."""


def translate(error: BaseException) -> ModelError:
    """Return our error for one of `FOREIGN`."""
    name = type(error).__name__
    if isinstance(error, _UNAVAILABLE):
        return ModelUnavailable(name)
    if not isinstance(error, openai.APIStatusError):
        return NotAModel(name)
    if error.status_code == HTTPStatus.REQUEST_TIMEOUT:
        return ModelUnavailable(name)
    objection = f"{error.message} {error.body}"
    refusal = ContextTooLong if _TOO_LONG.search(objection) else ModelRefused
    return refusal(f"{name} {error.status_code}", objection, error.status_code)
