"""What can go wrong between us and a model, and which setting an operator should look at.

    ModelError
    ├── ModelUnavailable    no answer now: connection, time limit, 429 after a retry, 5xx
    ├── ModelRefused        the server declines this request as it is (4xx)
    │   ├── ContextTooLong  the prompt is longer than the model takes
    │   ├── PicturesRefused  the model takes no pictures
    │   └── ContentRefused  a content filter declines the prompt or the answer
    ├── AnswerIncomplete    the answer broke off twice, or was cut short
    ├── AnswerUnreadable    the answer should be JSON of one shape, or text, and is not
    └── NotAModel           the server does not speak the API; the base URL may be wrong

Texts and codes carry no key and nothing that a person wrote. The SDK's own error is the cause.
`openai_client` maps the SDK's errors to these.
"""

import re
from http import HTTPStatus
from typing import Literal

CONTENT_FILTER = "content_filter"
"""Servers' error code, finish reason and reason of an incomplete response for a filtered text."""
CUT_SHORT = "length"
"""Our code for an answer that ended at its token limit, after the finish reason of that name."""
NO_CREDIT = "insufficient_quota"
NO_CREDIT_CODES = (NO_CREDIT, "billing_hard_limit_reached", "billing_not_active")
_BAD_KEY = "invalid_api_key"
_NO_MODEL = ("model_not_found", "model_decommissioned")

_BAD_REQUEST = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
_BAD_MESSAGES = (*_BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
_BAD_PARAMETERS = (*_BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
_KEY_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN)
_NO_SERVER = ("certificate", "dns", "connection_refused", "connection_failed")
_MODEL = re.compile(r"\bmodel", re.IGNORECASE)
_QUOTED = {
    name: re.compile(rf"['\"`.]{name}['\"`.\[]") for name in ("include", "reasoning", "text")
}
"""Parameters that are also plain English words: they count only if quoted, or part of a path."""

UNREADABLE = (ValueError, RecursionError, AttributeError, IndexError, TypeError)
"""What may be raised, also by the SDK, while an answer is read whose server leaves fields out."""


class ModelError(Exception):
    """Raised when a model gave no usable answer.

    `status` is the HTTP status, 0 if there was no HTTP answer. `code` is the server's identifier
    for the error (`invalid_api_key`), or ours for a failed connection; "" if there is none.
    """

    def __init__(self, text: str = "", status: int = 0, code: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class ModelUnavailable(ModelError):
    """Raised when the same request may succeed later."""


class ModelRefused(ModelError):
    """Raised when the server will never take this request.

    `objection` is the server's text, which may quote a person: it is searched and never shown.
    `param` is the parameter that the server names.
    """

    def __init__(
        self, text: str = "", status: int = 0, code: str = "", objection: str = "", param: str = ""
    ) -> None:
        super().__init__(text, status, code)
        self._objection = objection
        self._param = param

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Tell whether the server's text matches."""
        return bool(pattern.search(self._objection))

    def objects_to(self, parameter: str) -> bool:
        """Tell whether the server names that parameter."""
        quoted = _QUOTED.get(parameter)
        return self.says(quoted) if quoted else parameter in self._objection

    @property
    def may_concern_parameters(self) -> bool:
        """Whether a plainer form of the request may pass, although no parameter is named."""
        is_about_model = self.status == HTTPStatus.NOT_FOUND and self.says(_MODEL)
        return self.status in _BAD_PARAMETERS and not self._param and not is_about_model

    @property
    def may_concern_messages(self) -> bool:
        """Whether the request may pass with other messages: the key and the model are right."""
        return self.status in _BAD_MESSAGES


class ContextTooLong(ModelRefused):
    """Raised when the prompt is longer than the model takes."""


class PicturesRefused(ModelRefused):
    """Raised when the model, or its server, takes no pictures at all."""


class ContentRefused(ModelRefused):
    """Raised when a filter declines the prompt, or what the answer would say."""

    def __init__(self, text: str = CONTENT_FILTER, status: int = 0, code: str = "") -> None:
        super().__init__(text, status, code or CONTENT_FILTER)

    @property
    def may_concern_parameters(self) -> bool:
        """Whether a plainer form may pass: no, its text stays the same."""
        return False

    @property
    def may_concern_messages(self) -> bool:
        """Whether other messages may pass: yes, whatever the status is."""
        return True


class AnswerIncomplete(ModelError):
    """Raised when an answer began and was not finished."""


class AnswerUnreadable(ModelError):
    """Raised when an answer should have a shape, or any text, and has none."""


class NotAModel(ModelError):
    """Raised when the answer is not what the API describes."""


def model_error(error: BaseException | None) -> ModelError | None:
    """Return the model's error, also if it is only the cause of `error`; None if there is none."""
    while error is not None and not isinstance(error, ModelError):
        error = error.__cause__
    return error


def account_fault(error: BaseException) -> Literal["", "key", "credit", "model"]:
    """Return what only the operator can mend: the key, the credit or the model; "" for the rest.

    The server named it, so it neither passes by itself nor depends on the message.
    """
    match model_error(error):
        case ContentRefused():
            return ""
        case ModelError(code=code, status=status):
            if code in NO_CREDIT_CODES or status == HTTPStatus.PAYMENT_REQUIRED:
                return "credit"
            if code == _BAD_KEY or status == HTTPStatus.UNAUTHORIZED:
                return "key"
            if status == HTTPStatus.NOT_FOUND and code in _NO_MODEL:
                return "model"
    return ""


def setting_to_check(error: ModelError, model: str = "OPENAI_MODEL") -> str:
    """Return the setting to look at, "" if no setting helps; `model` is the model's setting."""
    server = "OPENAI_EMBEDDING" if model == "OPENAI_EMBEDDING_MODEL" else "OPENAI"
    setting = ""
    match error:
        case ContentRefused():
            pass
        case ContextTooLong():
            setting = "PROMPT_TOKENS"
        case ModelRefused(status=HTTPStatus.NOT_FOUND, code="model_not_found"):
            setting = model
        case ModelRefused(status=HTTPStatus.NOT_FOUND):
            setting = f"{server}_BASE_URL, {model}"
        case ModelError(code=code, status=status) if code == NO_CREDIT or status in _KEY_REFUSED:
            # The embedding model may have no key of its own.
            setting = ", ".join(f"{each}_API_KEY" for each in dict.fromkeys((server, "OPENAI")))
        case ModelError(code=code) if code in _NO_SERVER or isinstance(error, NotAModel):
            setting = f"{server}_BASE_URL"
        case ModelRefused() | AnswerUnreadable():
            setting = model
    return setting


def reason_of(error: BaseException, model: str = "OPENAI_MODEL") -> dict[str, object]:
    """Return a log line's fields for a failed call: `reason`, `status`, `code`, `look_at`.

    Fields without a value are left out. If a `ModelError` is the cause of `error`, they are its.
    """
    cause = model_error(error)
    if cause is None:
        return {"reason": type(error).__name__}
    fields: dict[str, object] = {
        "reason": type(cause).__name__,
        "status": cause.status,
        "code": cause.code,
        "look_at": setting_to_check(cause, model),
    }
    return {name: value for name, value in fields.items() if value}
