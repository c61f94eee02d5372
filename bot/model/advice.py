"""Says why a model gave no answer, for logs and operators: never in the server's words."""

from http import HTTPStatus

from bot.model.model_errors import (
    AnswerUnreadable,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelRefused,
    NotAModel,
)

_NO_CREDIT = "insufficient_quota"
_KEY_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN)
_NO_SERVER = ("dns", "connection_refused", "connection_failed")


def look_at(error: ModelError, model: str = "OPENAI_MODEL") -> str:
    """Return the setting to look at, "" when no setting helps; `model` names the model's."""
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
        case ModelError(code=code, status=status) if code == _NO_CREDIT or status in _KEY_REFUSED:
            setting = f"{server}_API_KEY"
        case ModelError(code=code) if code in _NO_SERVER or isinstance(error, NotAModel):
            setting = f"{server}_BASE_URL"
        case ModelRefused() | AnswerUnreadable():
            setting = model
    return setting


def model_error(error: BaseException | None) -> ModelError | None:
    """Return the model's error, also where another one only passes it on."""
    while error is not None and not isinstance(error, ModelError):
        error = error.__cause__
    return error


def reason_of(error: BaseException, model: str = "OPENAI_MODEL") -> dict[str, object]:
    """Return what a log line says of a failed call: class, status, the server's code, a setting.

    An error that only passes on a `ModelError` is told as that one.
    """
    cause = model_error(error)
    if cause is None:
        return {"reason": type(error).__name__}
    told = {"status": cause.status, "code": cause.code, "look_at": look_at(cause, model)}
    return {
        "reason": type(cause).__name__,
        **{name: value for name, value in told.items() if value},
    }


def summary(error: BaseException, model: str = "OPENAI_MODEL") -> str:
    """Return the same as one line."""
    told = {name: str(value) for name, value in reason_of(error, model).items()}
    setting = told.pop("look_at", "")
    return " ".join(told.values()) + (f"; look at {setting}" if setting else "")
