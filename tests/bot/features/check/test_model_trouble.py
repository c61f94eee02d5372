"""A failed row about a model's server always names a setting to change."""

import re
from collections.abc import Iterator

from bot.model.model_errors import (
    AnswerIncomplete,
    AnswerUnreadable,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)
from bot.model.trouble import KNOWN, OTHER, trouble
from bot.probe import Row
from tests.settings import Settings


def test_a_hint_names_the_settings_of_the_model_that_was_checked() -> None:
    litellm = next(server for server in KNOWN if server.name == "LiteLLM")
    row = trouble("Embeddings", ModelRefused(status=400), "OPENAI_EMBEDDING_MODEL", litellm)
    assert row.advice.endswith("LiteLLM gives the same answer to a wrong OPENAI_EMBEDDING_API_KEY")


def every_trouble() -> Iterator[Row]:
    errors: list[ModelError] = [
        ContextTooLong(),
        ModelRefused(status=400),
        ModelRefused(status=401),
        ModelRefused(status=404),
        NotAModel(),
        AnswerIncomplete(),
        AnswerUnreadable(),
        ModelUnavailable(code="timeout"),
        ModelUnavailable(code="dns"),
        ModelUnavailable(code="insufficient_quota", status=429),
        *(ModelUnavailable(status=status) for status in (429, 500, 501)),
    ]
    for error in errors:
        for known in (*KNOWN, OTHER):
            for model in ("OPENAI_MODEL", "OPENAI_EMBEDDING_MODEL"):
                yield trouble("Model", error, model, known)


def test_every_failed_row_names_a_setting_to_change() -> None:
    names = {name.upper() for name in Settings.model_fields}
    for row in every_trouble():
        assert names & set(re.findall(r"[A-Z][A-Z_]+", row.advice)), row
