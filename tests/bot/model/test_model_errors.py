"""What a log says of a failed call: the status, the server's code, the setting to look at."""

import pytest

from bot.model.model_errors import (
    AnswerUnreadable,
    ContentRefused,
    ContextTooLong,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
    reason_of,
    summary,
)
from memory.search.embeddings import EmbeddingsUnavailable


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            ModelRefused("x", 401, "invalid_api_key"),
            "ModelRefused 401 invalid_api_key; look at OPENAI_API_KEY",
        ),
        (
            ModelRefused("x", 404, "model_not_found"),
            "ModelRefused 404 model_not_found; look at OPENAI_MODEL",
        ),
        (ModelRefused("x", 404), "ModelRefused 404; look at OPENAI_BASE_URL, OPENAI_MODEL"),
        (
            ModelUnavailable("x", 429, "insufficient_quota"),
            "ModelUnavailable 429 insufficient_quota; look at OPENAI_API_KEY",
        ),
        (ModelUnavailable("x", 503), "ModelUnavailable 503"),
        (
            ModelUnavailable("x", code="connection_refused"),
            "ModelUnavailable connection_refused; look at OPENAI_BASE_URL",
        ),
        (ModelUnavailable("x", code="dns"), "ModelUnavailable dns; look at OPENAI_BASE_URL"),
        (NotAModel("x"), "NotAModel; look at OPENAI_BASE_URL"),
        (ContentRefused(status=400), "ContentRefused 400 content_filter"),
        (ContextTooLong("x", 400), "ContextTooLong 400; look at PROMPT_TOKENS"),
        (AnswerUnreadable("x"), "AnswerUnreadable; look at OPENAI_MODEL"),
        (TimeoutError(), "TimeoutError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_summary_of_an_error_is_one_line(error: Exception, told: str) -> None:
    assert summary(error) == told


def test_the_summary_of_an_error_is_that_of_its_model_error() -> None:
    error = EmbeddingsUnavailable("NotFoundError 404")
    error.__cause__ = ModelRefused("x", 404)
    assert summary(error) == "ModelRefused 404; look at OPENAI_BASE_URL, OPENAI_MODEL"
    look_at = "OPENAI_EMBEDDING_BASE_URL, OPENAI_EMBEDDING_MODEL"
    assert reason_of(error, "OPENAI_EMBEDDING_MODEL")["look_at"] == look_at
