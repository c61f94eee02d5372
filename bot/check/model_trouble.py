"""Says of a model's server why it gave no answer, and what to do; never in the server's words."""

from http import HTTPStatus

from bot.check.rows import Row
from bot.model.errors import (
    AnswerIncomplete,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)


def trouble(what: str, error: ModelError, model: str = "OPENAI_MODEL") -> Row:
    """Return the failed row; `model` is the setting that names the model."""
    server = "OPENAI_EMBEDDING" if model == "OPENAI_EMBEDDING_MODEL" else "OPENAI"
    match error:
        case ContextTooLong():
            seen, advice = "the prompt is too long for this model", "lower PROMPT_TOKENS"
        case ModelRefused(status=HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN):
            seen, advice = "the key is not accepted", f"look at {server}_API_KEY"
        case ModelRefused(status=HTTPStatus.NOT_FOUND):
            seen = "there is no such model, or no such page"
            advice = f"look at {model} and {server}_BASE_URL, which mostly ends in /v1"
        case ModelRefused():
            seen = f"the server declines such a request ({error.status})"
            advice = f"try another {model}"
        case ModelUnavailable():
            seen = "no answer in time, too many calls, or trouble at the server"
            advice = f"look at {server}_BASE_URL and at your account's credit, and try again"
        case NotAModel():
            seen = "what answers there is no OpenAI-compatible server"
            advice = f"look at {server}_BASE_URL, which mostly ends in /v1"
        case AnswerIncomplete():
            seen, advice = "the answer broke off, twice", "try again, or try another server"
        case _:
            seen, advice = "no usable answer", f"try another {model}"
    return Row(what, "fail", seen, advice)
