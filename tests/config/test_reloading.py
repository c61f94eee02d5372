"""An .env file is read again, and a misspelt setting is named with the one that was meant."""

from pathlib import Path

import pytest

from config.loading import (
    RELOADED,
    Reloaded,
    SettingsError,
    load_settings,
    reload_settings,
    unknown_names,
)
from tests.settings import Settings

BEFORE = "ADMIN_USER_IDS=1\nPRICES=m 1 1 1\nBUDGET_PER_MONTH=5\nPORT=8081\n"


@pytest.fixture
def env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("USER_TURNS_PER_MINUTE", "7")
    file = tmp_path / ".env"
    file.write_text(BEFORE, encoding="utf-8")
    return file


def reload(settings: Settings, env_file: Path, text: str) -> Reloaded:
    env_file.write_text(text, encoding="utf-8")
    return reload_settings(settings, str(env_file), lambda _: None)


def test_each_reloaded_setting_exists() -> None:
    assert set(Settings.model_fields) >= RELOADED


def test_changes_take_effect_or_are_named_and_the_environment_wins(env_file: Path) -> None:
    settings = load_settings(str(env_file), Settings)
    text = "ADMIN_USER_IDS=1,2\nPORT=9\nUSER_TURNS_PER_MINUTE=9\nOPENAI_MODEL=x\n"
    changed = ("ADMIN_USER_IDS", "BUDGET_PER_MONTH", "PRICES")
    waiting = ("OPENAI_MODEL", "PORT")
    assert reload(settings, env_file, text) == Reloaded(changed, waiting)
    assert settings.admin_user_ids == {1, 2}
    assert (len(settings.prices), int(settings.budget_per_month)) == (0, 0)
    assert (settings.port, settings.user_turns_per_minute) == (8081, 7)
    assert reload(settings, env_file, text) == Reloaded((), waiting)


def test_a_bad_value_changes_nothing_and_is_not_repeated(env_file: Path) -> None:
    settings = load_settings(str(env_file), Settings)
    refused = reload(settings, env_file, "ADMIN_USER_IDS=2\nPRICES=secret\n")
    assert refused.refusal.startswith("PRICES takes")
    assert "secret" not in refused.refusal
    assert settings.admin_user_ids == {1}
    together = reload(settings, env_file, "BUDGET_PER_MONTH=5\n")
    assert together == Reloaded(refusal="BUDGET_PER_MONTH needs PRICES")


def test_what_cannot_be_prepared_changes_nothing(env_file: Path) -> None:
    settings = load_settings(str(env_file), Settings)
    env_file.write_text("ADMIN_USER_IDS=2\n", encoding="utf-8")

    def refuse(new: Settings) -> None:
        raise SettingsError(f"{len(new.admin_user_ids)} is too few")

    assert reload_settings(settings, str(env_file), refuse).refusal == "1 is too few"
    assert settings.admin_user_ids == {1}


def test_without_a_file_there_is_nothing_to_read(env_file: Path) -> None:
    settings = load_settings(str(env_file), Settings)
    env_file.unlink()
    assert reload_settings(settings, str(env_file), lambda _: None) == Reloaded(
        nothing_to_read=True
    )


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def test_a_variable_that_resembles_a_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    near = {"OPENAI_KEY": "OPENAI_API_KEY", "OPEN_AI_API_KEY": "OPENAI_API_KEY"}
    near |= {"TELEGRAM_TOKEN": "TELEGRAM_BOT_TOKEN", "WEB_HOOK_URL": "WEBHOOK_URL"}
    for name, nearest in near.items():
        monkeypatch.setenv(name, "secret")
        monkeypatch.setenv(nearest, "")
    advice = [
        (name, f"if you mean {near[name]}, rename {name} to {near[name]}") for name in sorted(near)
    ]
    assert unknown_names(Settings, str(tmp_path / ".env")) == advice


def test_in_the_env_file_a_weaker_resemblance_counts(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "BOT_TOKEN=1\nOPENAI_URL=secret\nSOMETHING_ELSE=1\nREDIS_URL=redis://a\n"
        "SEARCH_URL=http://searx\n"
        "MAX_TURNS_PER_PERSON=9\n"  # a setting once, which resembles USER_TURNS_PER_MINUTE
    )
    assert unknown_names(Settings, str(file)) == [
        # PROMPT_TOKENS has more letters of it.
        ("BOT_TOKEN", "if you mean TELEGRAM_BOT_TOKEN, rename BOT_TOKEN to TELEGRAM_BOT_TOKEN"),
        ("MAX_TURNS_PER_PERSON", "remove MAX_TURNS_PER_PERSON: the limit is always 4 now"),
        ("OPENAI_URL", "if you mean OPENAI_BASE_URL, rename OPENAI_URL to OPENAI_BASE_URL"),
        ("SEARCH_URL", "remove SEARCH_URL: set SEARCH to this address instead"),
    ]


def test_a_setting_that_is_set_is_no_typo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://a")
    monkeypatch.setenv("REDIS_TLS_URL", "rediss://a")
    assert unknown_names(Settings, str(tmp_path / ".env")) == []


def test_an_unreadable_env_file_yields_nothing(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(b"OPENAI_KEY=\xff\xfe")
    assert unknown_names(Settings, str(file)) == []
