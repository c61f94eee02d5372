"""A reload changes some settings at once, names those that wait, and refuses bad ones."""

from pathlib import Path

import pytest

from config.loading import RELOADED, Reloaded, SettingsError, load_settings, reload_settings
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
    text = "ADMIN_USER_IDS=1,2\nPORT=9\nLOG_LEVEL=debug\nUSER_TURNS_PER_MINUTE=9\nOPENAI_MODEL=x\n"
    changed = ("ADMIN_USER_IDS", "BUDGET_PER_MONTH", "LOG_LEVEL", "PRICES")
    waiting = ("OPENAI_MODEL", "PORT")
    assert reload(settings, env_file, text) == Reloaded(changed, waiting)
    assert (sorted(settings.admin_user_ids), settings.log_level) == ([1, 2], "debug")
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
