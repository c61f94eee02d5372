"""`check` against each server of docs/models.md, working and with a typical mistake."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import pytest

from bot.features.check.advice import KNOWN, OTHER, recognize, trouble
from bot.features.check.chat_model import check_chat
from bot.features.check.embeddings import check_embeddings
from bot.model.model_errors import (
    AnswerIncomplete,
    AnswerUnreadable,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)
from bot.probe import Row
from config.loading import load_settings
from tests.bot.features.check.front_reader import SMALL
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers import profiles
from tests.servers.model_api import Dialect, ModelApiServer
from tests.settings import Settings

KEY = "sk-right"
WORKING: dict[str, object] = {"openai_model": "local", **SMALL}


@pytest.mark.parametrize("dialect", profiles.SERVERS, ids=attrgetter("server"))
async def test_a_working_server_is_recognised_by_its_answers(
    settings_of: SettingsOf, model_api: ModelApiServer, dialect: Dialect
) -> None:
    model_api.dialect = replace(dialect, api_key=KEY)
    settings = settings_of(openai_base_url=model_api.base_url, openai_api_key=KEY, **WORKING)
    rows = await rows_of(check_chat(settings))
    assert rows["Model server"].seen == f"{dialect.server}, asked over chat completions"
    assert {row.verdict for row in rows.values()} == {"ok"}


async def test_the_row_names_the_api_that_takes_tools_for_this_model(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    model_api.dialect = profiles.OPENAI
    values = WORKING | {"openai_model": "gpt-5.6-luna"}
    rows = await rows_of(check_chat(settings_of(openai_base_url=model_api.base_url, **values)))
    assert rows["Model server"].seen == "OpenAI, asked over Responses"
    model_api.dialect = profiles.chat_only(profiles.OPENAI)
    rows = await rows_of(check_chat(settings_of(openai_base_url=model_api.base_url, **values)))
    assert rows["Model server"].seen == "OpenAI, asked over chat completions"
    assert {row.verdict for row in rows.values()} == {"ok"}


async def test_a_server_without_the_api_that_is_set_fails(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    model_api.dialect = profiles.chat_only(profiles.OLLAMA)
    settings = settings_of(openai_base_url=model_api.base_url, openai_api="responses", **WORKING)
    [row] = (await rows_of(check_chat(settings))).values()
    assert row.verdict == "fail"
    assert row.advice.endswith("or set OPENAI_API=auto")


async def test_an_unknown_server_is_not_taken_for_a_known_one(model_api: ModelApiServer) -> None:
    assert await recognize(model_api.base_url, KEY) is OTHER
    assert await recognize("http://127.0.0.1:9/v1", KEY) is OTHER


async def test_a_key_may_be_any_text(model_api: ModelApiServer) -> None:
    model_api.dialect = profiles.OLLAMA
    assert (await recognize(model_api.base_url, "clé")).name == "Ollama"


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("http://127.0.0.1:9/api.openai.com/v1", ""),
        ("http://127.0.0.1:9//api.openai.com/v1", "OpenAI"),
        ("http://127.0.0.1:9//openrouter.ai/api/v1", "OpenRouter"),
    ],
)
async def test_a_server_is_recognised_by_its_address_alone(base_url: str, name: str) -> None:
    assert (await recognize(base_url, None)).name == name


@dataclass(frozen=True, slots=True)
class Wrong:
    """A typical mistake: the server, the first failed row, and the changed settings."""

    dialect: Dialect
    row: str
    changed: Callable[[ModelApiServer], dict[str, object]] = lambda _: {}


def wrong_key(_: ModelApiServer) -> dict[str, object]:
    return {"openai_api_key": "sk-wrong-key"}


def wrong_model(_: ModelApiServer) -> dict[str, object]:
    return {"openai_model": "typo"}


def without_v1(server: ModelApiServer) -> dict[str, object]:
    return {"openai_base_url": server.url}


WRONG = [
    Wrong(profiles.OPENAI, "Model stream", wrong_key),
    Wrong(profiles.OPENROUTER, "Model stream", wrong_model),
    Wrong(profiles.AZURE, "Model stream", wrong_model),
    Wrong(profiles.GROQ, "Embeddings"),
    Wrong(replace(profiles.OLLAMA, context_tokens=2000), "Model prompt"),
    Wrong(profiles.OLLAMA, "Model stream", without_v1),
    Wrong(replace(profiles.LLAMA_CPP, context_tokens=2000), "Model prompt"),
    Wrong(replace(profiles.LLAMA_CPP, refuses=profiles.lacks_embeddings), "Embeddings"),
    Wrong(replace(profiles.VLLM, refuses=profiles.lacks_tools), "Model tool call"),
    Wrong(replace(profiles.LM_STUDIO, context_tokens=2000), "Model prompt"),
    Wrong(profiles.LM_STUDIO, "Model stream", without_v1),
    Wrong(profiles.LITELLM, "Model stream", wrong_key),
]
_GUIDE = (Path(__file__).parents[4] / "docs" / "models.md").read_text()
_SECTIONS = {part.partition("\n")[0]: part for part in _GUIDE.split("\n## ")[1:]}
_DOCUMENTED = re.compile(r"\| ([\w ]+): (.*) → (.*) \|\n")
"""The row of a typical mistake in the guide: its name, and how what is seen and advised begins."""


def without_counts(seen: str) -> str:
    """Leave out how long the prompt was, which depends on the settings."""
    return re.sub(r"\d+ tokens", "tokens", seen)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.dialect.server}-{wrong.row}")
async def test_a_typical_mistake_has_the_documented_row(
    settings_of: SettingsOf, model_api: ModelApiServer, wrong: Wrong
) -> None:
    model_api.dialect = replace(wrong.dialect, api_key=KEY, models=frozenset({"local", "embedder"}))
    values: dict[str, object] = {
        "openai_base_url": model_api.base_url,
        "openai_api_key": KEY,
        "openai_embedding_model": "embedder",
        **WORKING,
        **wrong.changed(model_api),
    }
    settings = settings_of(**values)
    rows = await rows_of(check_chat(settings))
    if "Model server" in rows:
        rows |= await rows_of(check_embeddings(settings))
    [failed] = [row for row in rows.values() if row.verdict == "fail"]
    assert failed.what == wrong.row
    assert [
        advice
        for what, seen, advice in _DOCUMENTED.findall(_SECTIONS[wrong.dialect.server])
        if what == wrong.row
        and without_counts(failed.seen).startswith(without_counts(seen))
        and failed.advice.startswith(advice)
    ]


def test_every_known_server_has_a_section_in_the_guide() -> None:
    assert set(_SECTIONS) == {server.name for server in KNOWN}


@pytest.mark.parametrize("name", _SECTIONS)
def test_a_recipe_holds_only_valid_settings(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for field in Settings.model_fields:
        monkeypatch.delenv(field.upper(), raising=False)
    [recipe] = re.findall(r"```ini\n(.*?)```", _SECTIONS[name], re.DOTALL)
    env_file = tmp_path / ".env"
    env_file.write_text(recipe)
    settings = load_settings(str(env_file))
    given = dict(line.split("=", 1) for line in recipe.splitlines())
    assert {variable.lower() for variable in given} <= Settings.model_fields.keys()
    assert settings.openai_base_url == given.get("OPENAI_BASE_URL", "https://api.openai.com/v1")


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
