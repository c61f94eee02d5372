"""A misspelt setting is named together with the one that was meant; its value is never shown."""

from pathlib import Path

import pytest

from config.loading import UnknownName, unknown_names
from tests.settings import Settings


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("OPENAI_KEY", "OPENAI_API_KEY"),
        ("TELEGRAM_TOKEN", "TELEGRAM_BOT_TOKEN"),
        ("OPEN_AI_API_KEY", "OPENAI_API_KEY"),
        ("WEB_HOOK_URL", "WEBHOOK_URL"),
    ],
)
def test_a_variable_that_resembles_a_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, nearest: str
) -> None:
    monkeypatch.setenv(name, "secret")
    monkeypatch.setenv(nearest, "")
    assert unknown_names(Settings, str(tmp_path / ".env")) == [UnknownName(name, nearest)]


def test_in_the_env_file_a_weaker_resemblance_counts(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("BOT_TOKEN=1\nOPENAI_URL=secret\nSOMETHING_ELSE=1\nREDIS_URL=redis://a\n")
    assert unknown_names(Settings, str(file)) == [
        UnknownName("BOT_TOKEN", "TELEGRAM_BOT_TOKEN"),  # PROMPT_TOKENS has more letters of it
        UnknownName("OPENAI_URL", "OPENAI_BASE_URL"),
    ]


def test_a_setting_that_is_set_was_not_misspelt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://a")
    monkeypatch.setenv("REDIS_TLS_URL", "rediss://a")
    assert unknown_names(Settings, str(tmp_path / ".env")) == []


def test_an_unreadable_env_file_yields_nothing(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(b"OPENAI_KEY=\xff\xfe")
    assert unknown_names(Settings, str(file)) == []
