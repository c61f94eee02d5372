"""`backup` and `restore` say what they did, or why they did nothing."""

from argparse import Namespace
from pathlib import Path

import pytest

from bot.features.backup.command_line import NOTHING_THERE, run_backup, run_restore
from bot.features.backup.settings import BackupSettings


def settings_of(valkey: str) -> BackupSettings:
    values = {"TELEGRAM_BOT_TOKEN": "42:token", "REDIS_URL": valkey, "BACKUP_PASSPHRASE": "barley"}
    return BackupSettings.model_validate({name.lower(): value for name, value in values.items()})


def test_restoring_a_backup_without_memory_says_so_and_has_an_exit_status_of_its_own(
    valkey: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, file = settings_of(valkey), tmp_path / "empty"
    assert run_backup(settings, Namespace(file=file, journal=False)) == 0
    assert run_restore(settings, Namespace(files=[file], other_bot=False)) == NOTHING_THERE
    assert "nothing to restore" in capsys.readouterr().out


def test_a_backup_into_a_folder_that_does_not_exist_names_its_file(
    valkey: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nowhere" / "backup"
    assert run_backup(settings_of(valkey), Namespace(file=file, journal=False)) == 1
    assert capsys.readouterr().err == f"{file}: No such file or directory\n"
