"""`python -m bot backup` and `restore`."""

import argparse
from pathlib import Path

from bot.feature import Subcommands
from bot.features.backup.settings import BackupSettings


def add_commands(commands: Subcommands) -> None:
    """Add both commands."""
    backup = commands.add_parser("backup", help="write the memory of this bot into a file")
    backup.set_defaults(command=_backup)
    backup.add_argument("file", type=Path, help="where to; an older file is replaced")
    backup.add_argument(
        "--journal", action="store_true", help="only what must stay erased, small and quick"
    )
    restore = commands.add_parser("restore", help="restore backups, without what was erased since")
    restore.set_defaults(command=_restore)
    restore.add_argument(
        "files", type=Path, nargs="+", help="backups, and journals that were saved later"
    )
    restore.add_argument(
        "--other-bot", action="store_true", help="also accept files of a bot with another token"
    )


def _backup(settings: BackupSettings, options: argparse.Namespace) -> int:
    from bot.features.backup.running import run_backup  # noqa: PLC0415

    return run_backup(settings, options)


def _restore(settings: BackupSettings, options: argparse.Namespace) -> int:
    from bot.features.backup.running import run_restore  # noqa: PLC0415

    return run_restore(settings, options)
