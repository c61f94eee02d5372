"""What can go wrong between us and a model; each class says when.

    ModelError
    ├── ModelUnavailable    no answer now: connection, time limit, 429 after a retry, 5xx
    ├── ModelRefused        the server declines this request as it is (4xx)
    │   ├── ContextTooLong  because the prompt is longer than the model takes
    │   └── ContentRefused  because of what the prompt or the answer says: a content filter
    ├── AnswerIncomplete    the answer broke off, twice, or was cut short
    ├── AnswerUnreadable    what should be JSON of one shape is not, twice
    └── NotAModel           what answered does not speak the dialect: a wrong base URL, say

Texts and codes carry no key and nothing that a person wrote; the SDK's own error is the cause.
"""

import re
import socket
from collections.abc import Iterator
from http import HTTPStatus

import httpx2
import openai

from bot.model.call import Usage

CONTENT_FILTER = "content_filter"
"""The server's code, finish reason and reason of an incomplete response for a filtered text."""
CUT_SHORT = "length"
"""Our code for an answer that ended at a bound, after the finish reason; the server is well."""


class ModelError(Exception):
    """Raised when a model gave no usable answer.

    `status` is that of the HTTP answer, 0 when there was none. `code` is the server's identifier
    for the trouble (`invalid_api_key`), or ours for a failed connection; "" when there is none.
    `usage` is what answers of no use were billed, as far as the server said.
    """

    def __init__(self, text: str = "", status: int = 0, code: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.usage = Usage()


class ModelUnavailable(ModelError):  # noqa: N818 - the names say when
    """Raised when the same request may succeed later."""


class ModelRefused(ModelError):  # noqa: N818
    """Raised when the server will never take this request."""

    def __init__(
        self,
        text: str = "",
        status: int = 0,
        code: str = "",
        *,
        objection: str = "",
        param: str = "",
    ) -> None:
        super().__init__(text, status, code)
        self._objection = objection  # the server's words, which may quote a person's
        self._param = param

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Tell whether the server's words match."""
        return bool(pattern.search(self._objection))

    @property
    def may_concern_parameters(self) -> bool:
        """Whether the request may be taken in a plainer form, though nothing of it is named."""
        is_about_model = self.status == HTTPStatus.NOT_FOUND and self.says(_MODEL)
        return self.status in _BAD_REQUEST and not self._param and not is_about_model

    @property
    def may_concern_messages(self) -> bool:
        """Whether the request may be taken with other messages; key and model are in order."""
        return self.status in _BAD_MESSAGES

    def objects_to(self, parameter: str) -> bool:
        """Whether the server named that parameter when it declined."""
        quoted = _ENGLISH.get(parameter)
        return self.says(quoted) if quoted else parameter in self._objection


class ContextTooLong(ModelRefused):
    """Raised when the prompt is longer than the model takes."""


class ContentRefused(ModelRefused):
    """Raised when a filter declines what the prompt says, or what the answer would say."""

    def __init__(self, text: str = CONTENT_FILTER, status: int = 0, code: str = "") -> None:
        super().__init__(text, status, code or CONTENT_FILTER)

    @property
    def may_concern_parameters(self) -> bool:
        """Whether the request may be taken in a plainer form: no, the words stay the same."""
        return False

    @property
    def may_concern_messages(self) -> bool:
        """Whether the request may be taken with other messages: yes, whatever the status."""
        return True


class AnswerIncomplete(ModelError):  # noqa: N818
    """Raised when an answer began and was not finished."""


class AnswerUnreadable(ModelError):  # noqa: N818
    """Raised when an answer that should have a shape, or any text, has none."""


class NotAModel(ModelError):  # noqa: N818
    """Raised when the answer is not what the dialect describes."""


_BAD_REQUEST = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)
_BAD_MESSAGES = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)
SDK_ERRORS = (
    openai.OpenAIError,
    ValueError,
    RecursionError,
    AttributeError,
    IndexError,
    TypeError,
)
"""What a call may raise: sparse servers make the SDK stumble over what it expects to be there."""

_MODEL = re.compile(r"\bmodel", re.IGNORECASE)
_ENGLISH = {
    name: re.compile(rf"['\"`.]{name}['\"`.\[]") for name in ("include", "reasoning", "text")
}
"""Parameters that are words of any sentence, unless they are quoted or part of a path."""

_UNAVAILABLE = (
    openai.ConflictError,
    openai.InternalServerError,
    openai.RateLimitError,
)
_TOO_LONG = re.compile(r"context[_ ](length|size|window)", re.IGNORECASE)
"""The code of api.openai.com, and the words of servers that have no code for it."""

_FILTERED = re.compile(
    r"content[_ ]?filter|content[_ ]?(management )?policy|responsibleaipolicy"
    r"|data_inspection_failed|requires moderation|(input|prompt) was flagged",
    re.IGNORECASE,
)
"""Codes and words of Azure, OpenAI, LiteLLM, OpenRouter and DashScope for a filtered prompt."""

_NOT_FILTERED = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.NOT_FOUND}
)
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{1,49}")
"""An identifier; anything else might be a sentence with a person's words."""


def translate(error: BaseException) -> ModelError:
    """Return our error for one of `FOREIGN`."""
    name = type(error).__name__
    if isinstance(error, openai.APIConnectionError) and not _is_compressed(error):
        return ModelUnavailable(name, code=_connection_code(error))
    if not isinstance(error, openai.APIStatusError) or error.response.is_redirect:
        return NotAModel(name)
    status, code = error.status_code, code_of(error.body)
    text = f"{name} {status}"
    if isinstance(error, _UNAVAILABLE) or status == HTTPStatus.REQUEST_TIMEOUT:
        return ModelUnavailable(text, status, code)
    objection = f"{error.message} {error.body}"
    if _TOO_LONG.search(objection):
        return ContextTooLong(text, status, code, objection=objection)
    if status not in _NOT_FILTERED and is_filtered(code, objection):
        return ContentRefused(text, status, code)
    return ModelRefused(text, status, code, objection=objection, param=error.param or "")


def code_of(body: object) -> str:
    """Return the server's identifier for an error, from the body or its `error`; "" without one."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    if not isinstance(body, dict):
        return ""
    named = (body.get(name) for name in ("code", "type"))
    return next((each for each in named if isinstance(each, str) and _CODE.fullmatch(each)), "")


def is_filtered(code: str, objection: str = "") -> bool:
    """Tell whether a filter declined a text, by the server's code, else by its words."""
    return bool(_FILTERED.search(code) or _FILTERED.search(objection))


def _connection_code(error: BaseException) -> str:
    """Return why there was no connection: a name that is not known, a refusal, or time."""
    if isinstance(error, openai.APITimeoutError):
        return "timeout"
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "dns"
        if isinstance(cause, ConnectionRefusedError):
            return "connection_refused"
    return "connection_failed"


def _is_compressed(error: BaseException) -> bool:
    return any(isinstance(cause, httpx2.DecodingError) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what led to it, also those that a group holds."""
    while error is not None:
        yield error
        for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            yield from _causes(inner)
        error = error.__cause__ or error.__context__
