"""Says why a model gave no answer and what to do; it never repeats the server's text."""

from dataclasses import replace
from http import HTTPStatus

from bot.model.model_errors import (
    NO_CREDIT,
    AnswerIncomplete,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)
from bot.model.recognition import OTHER, KnownServer
from bot.probe import Row
from config.settings import Settings

_CONNECTION = {
    "dns": "the name in the address is unknown",
    "connection_refused": "no server listens at the address",
    "connection_failed": "the connection failed",
}


def trouble(
    what: str, error: ModelError, model: str = "OPENAI_MODEL", known: KnownServer = OTHER
) -> Row:
    """Return the failed row; `model` is the setting that names the model."""
    has_own_server = model in ("OPENAI_EMBEDDING_MODEL", "TRANSCRIPTION_MODEL", "SPEECH_MODEL")
    server = model.removesuffix("_MODEL") if has_own_server else "OPENAI"
    address = f"{server}_BASE_URL, which usually ends in /v1"
    if known.name:
        address = f"{server}_BASE_URL ({known.name}: {known.address})"
    match error:
        case ContextTooLong():
            seen, advice = "the prompt is too long for this model", "lower PROMPT_TOKENS"
        case ModelRefused(status=HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN):
            seen, advice = "the key was refused", f"check {server}_API_KEY"
        case ModelRefused(status=HTTPStatus.NOT_FOUND):
            seen, advice = "no such model, or no such path", f"check {model} and {address}"
        case ModelRefused():
            code = f", {error.code}" if error.code else ""
            seen = f"the server refused the request ({error.status}{code})"
            advice = f"try another {model}"
            if known.refusal:
                hint = known.refusal.replace("OPENAI_API_KEY", f"{server}_API_KEY")
                advice += f"; {hint.replace('OPENAI_MODEL', model)}"
        case ModelUnavailable():
            seen, advice = _unavailable(error, model, server)
        case NotAModel():
            seen, advice = "the server there is not OpenAI-compatible", f"check {address}"
        case AnswerIncomplete():
            seen, advice = "the answer broke off twice", f"try again, or another {model}"
        case _:
            seen, advice = "no usable answer", f"try another {model}"
    return Row(what, "fail", seen, advice)


def optional_trouble(what: str, error: ModelError, model: str, advice: str = "") -> Row:
    """Return the row of a model that the bot can do without; `advice` follows the usual one."""
    row = trouble(what, error, model)
    return replace(row, verdict="warn", advice=f"{row.advice}{advice}, or do without: {model}=off")


def name_shared_key(row: Row, settings: Settings, server: str) -> Row:
    """Name `OPENAI_API_KEY` in the advice if `server`, such as `SPEECH`, has no key of its own."""
    own, address = f"{server}_API_KEY", f"{server}_BASE_URL".lower()
    is_shared = getattr(settings, address) == settings.openai_base_url
    if not is_shared or own.lower() in settings.model_fields_set:
        return row
    return replace(row, advice=row.advice.replace(own, "OPENAI_API_KEY"))


def _unavailable(error: ModelUnavailable, model: str, server: str) -> tuple[str, str]:
    """Return why there is no answer now, and what to do."""
    match error.code, error.status:
        case "dns" | "connection_refused" | "connection_failed", _:
            seen = _CONNECTION[error.code]
            advice = f"check {server}_BASE_URL, and whether the server runs"
        case code, _ if code == NO_CREDIT:
            seen, advice = "the account has no credit", f"check the account of {server}_API_KEY"
        case _, HTTPStatus.TOO_MANY_REQUESTS:
            seen, advice = "too many requests", f"wait, or check the limits of {server}_API_KEY"
        case _, HTTPStatus.NOT_IMPLEMENTED:
            seen, advice = "the server does not offer this", f"check {model}"
        case _, 0:
            seen = "no answer in time"
            faster = "try a faster model" if model == "SPEECH_MODEL" else "raise MODEL_TIMEOUT_S"
            advice = f"check {server}_BASE_URL, or {faster}"
        case _:
            seen = f"the server failed ({error.status})"
            advice = f"try again, or check {model} and {server}_BASE_URL"
    return seen, advice
