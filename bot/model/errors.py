"""What can go wrong between us and a model; each class says when.

    ModelError
    ├── ModelUnavailable    no answer now: connection, time limit, 429 after retries, 5xx
    ├── ModelRefused        the server declines this request as it is (4xx)
    │   └── ContextTooLong  because the prompt is longer than the model takes
    ├── AnswerIncomplete    the stream ended without a finish reason, twice
    └── NotAModel           what answered does not speak the dialect: a wrong base URL, say

Texts carry no key and nothing that a person wrote; the SDK's own error is the cause.
"""

import json

import openai
from pydantic import ValidationError


class ModelError(Exception):
    """Raised when a model gave no usable answer."""


class ModelUnavailable(ModelError):  # noqa: N818 - the names say when
    """Raised when the same request may succeed later."""


class ModelRefused(ModelError):  # noqa: N818
    """Raised when the server will never take this request; `param` names what it objects to."""

    def __init__(self, text: str, param: str = "") -> None:
        super().__init__(text)
        self.param = param


class ContextTooLong(ModelRefused):
    """Raised when the prompt is longer than the model takes."""


class AnswerIncomplete(ModelError):  # noqa: N818
    """Raised when a stream ended without saying that it was finished."""


class NotAModel(ModelError):  # noqa: N818
    """Raised when the answer is not what the dialect describes."""


FOREIGN = (
    openai.OpenAIError,
    json.JSONDecodeError,
    ValidationError,
    AttributeError,
    IndexError,
    TypeError,
)
"""What a call may raise: sparse servers make the SDK stumble over what it expects to be there."""

_UNAVAILABLE = (
    openai.APIConnectionError,
    openai.APITimeoutError,
    openai.ConflictError,
    openai.InternalServerError,
    openai.RateLimitError,
)


def translate(error: BaseException) -> ModelError:
    """Return our error for one of `FOREIGN`."""
    name = type(error).__name__
    if isinstance(error, _UNAVAILABLE):
        return ModelUnavailable(name)
    if isinstance(error, openai.APIStatusError):
        param = str(error.param or "")
        if error.code == "context_length_exceeded":
            return ContextTooLong(name, param)
        return ModelRefused(f"{name} {error.status_code}", param)
    if isinstance(error, openai.APIError):
        # An error that came within the stream, when the status was sent already.
        return ModelUnavailable(name)
    return NotAModel(name)
