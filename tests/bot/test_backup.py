"""`restore` says what it did, also when there was nothing to do."""

from argparse import Namespace
from pathlib import Path

import pytest

from bot.backup import NOTHING_THERE, run_backup, run_restore
from config.settings import Settings


def test_restoring_a_backup_without_memory_says_so_and_has_an_exit_status_of_its_own(
    valkey: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"TELEGRAM_BOT_TOKEN": "42:token", "REDIS_URL": valkey, "BACKUP_PASSPHRASE": "barley"}
    settings = Settings.model_validate({name.lower(): value for name, value in values.items()})
    file = tmp_path / "empty"
    assert run_backup(settings, Namespace(file=file, journal=False)) == 0
    assert run_restore(settings, Namespace(files=[file], other_bot=False)) == NOTHING_THERE
    assert "nothing to restore" in capsys.readouterr().out
