"""`backup`, `restore` and the row of `check` say what was done, or why nothing was."""

import asyncio
import os
from argparse import Namespace
from collections.abc import Callable
from errno import ENOENT, ENOSPC
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot.features.backup.backup_file import BackupRefused
from bot.features.backup.command_line import NOTHING_THERE, _on_one_server, run_backup, run_restore
from bot.features.backup.probes import PROBES, backup_row
from bot.features.backup.saving import Saving
from bot.features.backup.settings import BackupSettings
from memory.store.client import RedisClient
from memory.store.errors import StoreRefused
from memory.store.keys import Keys
from memory.store.store import OtherLayout
from tests.bot.features.conftest import SettingsOf
from tests.memory.conftest import memory_of
from tests.memory.turns import HERE
from tests.valkey import ValkeyServer


def settings_of(valkey: str) -> BackupSettings:
    values = {"TELEGRAM_BOT_TOKEN": "42:token", "REDIS_URL": valkey, "BACKUP_PASSPHRASE": "barley"}
    return BackupSettings.model_validate({name.lower(): value for name, value in values.items()})


def test_a_passphrase_is_asked_for_at_a_terminal_and_a_new_one_twice(
    valkey: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file without memory is restored with an exit status of its own."""
    typed = iter(["yes", "yes", "yes", "yes", "yes", "no", "yes", "no"])
    monkeypatch.setattr("getpass.getpass", lambda _: next(typed))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    settings = settings_of(valkey).model_copy(update={"backup_passphrase": None})
    for statuses in ([0, NOTHING_THERE], [0, 1], [1, 1]):
        file.unlink(missing_ok=True)
        saved = run_backup(settings, Namespace(file=file, journal=False))
        assert [saved, run_restore(settings, Namespace(files=[file], other_bot=False))] == statuses
    assert capsys.readouterr().out.count("nothing to restore") == 1
    assert [*typed] == []


def test_a_backup_that_cannot_be_written_names_its_file(
    valkey: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill_up(_: int) -> None:
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr("os.fsync", fill_up)
    for file, why in ((tmp_path / "no" / "file", ENOENT), (tmp_path / "file", ENOSPC)):
        assert run_backup(settings_of(valkey), Namespace(file=file, journal=False)) == 1
        assert capsys.readouterr().err.endswith(f"{file}: {os.strerror(why)}\n")


async def test_a_redis_that_fails_or_is_restarted_meanwhile_ends_the_command_with_what_to_do(
    tmp_path: Path,
) -> None:
    """A scan that goes on at another server may miss keys, and the log spoke of the start."""
    with ValkeyServer(tmp_path) as server:
        client = await RedisClient.open(server.url)

        async def run(*stopped: Callable[[], object]) -> None:
            async with _on_one_server(client):
                for each in stopped:
                    each()
                await client.call("SET", "key", 1)

        await client.call("SET", Keys(42).scope(HERE).log, "damaged")
        with pytest.raises(StoreRefused, match=f"{HERE.tag} is damaged; /clear_memory"):
            await Saving(memory_of(client).store)._read(HERE)
        with pytest.raises(BackupRefused, match="Redis is full: give"):
            await run(partial(server.ask, "CONFIG SET maxmemory 1"))
        with pytest.raises(BackupRefused, match="restarted or replaced meanwhile"):
            await run(server.stop, server.start)
        with pytest.raises(BackupRefused, match="has failed, so run this again: SET"):
            await run(server.stop)
        await Saving(memory_of(client).store).note_done()
        await client.close()


@pytest.mark.parametrize(("layout", "advice"), [(1, "a version of"), (99, "that wrote it, or")])
async def test_what_another_version_has_stored_is_not_backed_up(
    store: RedisClient, valkey: str, file: Path, layout: int, advice: str
) -> None:
    """The advice for a newer layout was to start this version, which refuses to start."""
    await store.call("SET", Keys(42).layout, layout)
    options = Namespace(file=file, journal=False)
    with pytest.raises(OtherLayout, match=f"start .*{advice}"):
        await asyncio.to_thread(run_backup, settings_of(valkey), options)


DAY_S = 86_400


def test_the_row_says_how_old_the_last_backup_is() -> None:
    rows = [backup_row(made_at, 100 * DAY_S) for made_at in (0, 10 * DAY_S, 90 * DAY_S, 1e12)]
    assert [row.verdict for row in rows] == ["warn", "warn", "ok", "ok"]
    days = ["none was made yet", *(f"made {each} ago" for each in ("90 days", "10 days"))]
    assert [row.seen for row in rows] == [*days, "made within the last two days"]


async def test_a_backup_is_seen_by_the_check_of_its_bot_alone(
    store: RedisClient, settings_of: SettingsOf
) -> None:
    await Saving(memory_of(store).store).note_done()
    for bot, verdict in ((42, "ok"), (43, "warn")):
        [row] = [row async for row in PROBES[0].run(settings_of(), store, Keys(bot))]
        assert row.verdict == verdict
