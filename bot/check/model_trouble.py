"""Says of a model's server why it gave no answer, and what to do; never in the server's words."""

from http import HTTPStatus

from bot.check.recognition import OTHER, KnownServer
from bot.check.rows import Row
from bot.model.model_errors import (
    AnswerIncomplete,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)

_CONNECTION = {
    "dns": "nobody knows that address",
    "connection_refused": "nobody listens at that address",
    "connection_failed": "the connection fails",
}


def trouble(
    what: str, error: ModelError, model: str = "OPENAI_MODEL", known: KnownServer = OTHER
) -> Row:
    """Return the failed row; `model` is the setting that names the model."""
    server = "OPENAI_EMBEDDING" if model == "OPENAI_EMBEDDING_MODEL" else "OPENAI"
    address = f"{server}_BASE_URL, which mostly ends in /v1"
    if known.name:
        address = f"{server}_BASE_URL ({known.name}: {known.address})"
    match error:
        case ContextTooLong():
            seen = "the prompt is too long for this model"
            advice = "lower PROMPT_TOKENS"
        case ModelRefused(status=HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN):
            seen, advice = "the key is not accepted", f"look at {server}_API_KEY"
        case ModelRefused(status=HTTPStatus.NOT_FOUND):
            seen = "there is no such model, or no such page"
            advice = f"look at {model} and {address}"
        case ModelRefused():
            code = f", {error.code}" if error.code else ""
            seen = f"the server declines such a request ({error.status}{code})"
            advice = f"try another {model}"
            if known.refusal:
                hint = known.refusal.replace("OPENAI_API_KEY", f"{server}_API_KEY")
                advice += f"; {hint.replace('OPENAI_MODEL', model)}"
        case ModelUnavailable():
            seen, advice = _unavailable(error, model, server)
        case NotAModel():
            seen = "what answers there is no OpenAI-compatible server"
            advice = f"look at {address}"
        case AnswerIncomplete():
            seen, advice = "the answer broke off, twice", f"try again, or another {model}"
        case _:
            seen, advice = "no usable answer", f"try another {model}"
    return Row(what, "fail", seen, advice)


def _unavailable(error: ModelUnavailable, model: str, server: str) -> tuple[str, str]:
    """Say what is the matter with a server that gave no answer, and what to do."""
    match error.code, error.status:
        case "dns" | "connection_refused" | "connection_failed", _:
            seen = _CONNECTION[error.code]
            advice = f"look at {server}_BASE_URL, and whether the server runs"
        case "insufficient_quota", _:
            seen, advice = "the account has no credit left", f"look at that of {server}_API_KEY"
        case _, HTTPStatus.TOO_MANY_REQUESTS:
            seen, advice = "too many calls", f"wait, or look at the limits of {server}_API_KEY"
        case _, HTTPStatus.NOT_IMPLEMENTED:
            seen, advice = "the server does not offer this", f"look at {model}"
        case _, 0:
            seen, advice = (
                "no answer in time",
                f"look at {server}_BASE_URL, or raise MODEL_TIMEOUT_S",
            )
        case _:
            seen = f"trouble at the server ({error.status})"
            advice = f"try again, or look at {model} and {server}_BASE_URL"
    return seen, advice
