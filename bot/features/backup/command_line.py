"""`python -m bot backup` and `restore`: the memory of one bot as a file, while the bot may run."""

import argparse
import asyncio
import getpass
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bot.feature import Subcommands
from bot.features import modules
from bot.features.backup.backup_file import BackupHeader, BackupReader, BackupRefused, BackupWriter
from bot.features.backup.restoring import Contents, Outcome, Restoring, check_files
from bot.features.backup.saving import Saving
from bot.features.backup.settings import BackupSettings
from bot.operator_classes import UnusableClass, found_at
from bot.runtime.process import memory_options, open_store, redis_address
from memory.store.client import RedisClient
from memory.store.embedded import EmbeddedBusy
from memory.store.errors import StoreError, StoreFull
from memory.store.keys import Keys
from memory.store.store import LAYOUT, Scripts, Store, check_layout, take_layout

_SENTENCES: dict[Outcome, str] = {
    "restored": "restored",
    "done": "restored already by an earlier run",
    "kept": "left as they are: they have content of their own, or were cleared since",
    "forgotten": "not restored: all of it was erased since, or its time has passed",
    "expired": "not restored: older than MEMORY_TTL_DAYS",
}
_PROGRESS_S = 1.0
NOTHING_THERE = 3  # the exit status of restoring files without memory; a refusal is 1


def add_commands(commands: Subcommands) -> None:
    """Add both commands."""
    backup = commands.add_parser("backup", help="write the memory of this bot into a file")
    backup.set_defaults(command=run_backup)
    backup.add_argument("file", type=Path, help="where to; an older file is replaced")
    backup.add_argument(
        "--journal", action="store_true", help="only what must stay erased, small and quick"
    )
    restore = commands.add_parser("restore", help="restore backups, without what was erased since")
    restore.set_defaults(command=run_restore)
    restore.add_argument(
        "files", type=Path, nargs="+", help="backups, and journals that were saved later"
    )
    restore.add_argument(
        "--other-bot", action="store_true", help="also accept files of a bot with another token"
    )


def run_backup(settings: BackupSettings, options: argparse.Namespace) -> int:
    """Write a backup, or the journal of erasures alone; return the exit status."""
    _check_token(settings)
    try:
        question = "Passphrase for the backup (empty: not encrypted): "
        passphrase = _passphrase(settings, question, again="Once more: ")
        with redis_address(settings) as redis:
            counts = asyncio.run(_save(settings, redis, options, passphrase))
    except (BackupRefused, EmbeddedBusy, OSError) as error:
        return _refused(settings, error, options.file)
    sealed = "encrypted" if passphrase else "not encrypted: set BACKUP_PASSPHRASE to encrypt it"
    sys.stdout.write(
        f"{options.file}: {counts['scopes']} conversations, people and namespaces, "
        f"{counts['messages']} messages, {counts['erasures']} erasures; {sealed}\n"
    )
    return 0


def run_restore(settings: BackupSettings, options: argparse.Namespace) -> int:
    """Restore files; return the exit status, `NOTHING_THERE` if they hold no memory.

    Nothing is written before all of them were checked.
    """
    _check_token(settings)
    try:
        # Now each kind of stored field is known: its rule decides what is left of a scope.
        modules("feature")
        for path in settings.features:
            found_at("FEATURES", path)
        readers = sorted(map(BackupReader, options.files), key=lambda each: -each.header.created_at)
        locked = [reader for reader in readers if reader.header.salt]
        passphrase = _passphrase(settings, "Passphrase of the backup: ") if locked else ""
        for reader in locked:
            reader.unlock(passphrase)
        contents = check_files(readers, settings.bot_id, is_other_bot=options.other_bot)
        with redis_address(settings) as redis:
            counts = asyncio.run(_restore(settings, redis, readers, contents))
    except (BackupRefused, EmbeddedBusy, OSError, UnusableClass) as error:
        return _refused(settings, error)
    if not contents.scopes:
        erasures, access = len(contents.journals.entries), len(contents.access)
        noted = f"erasures noted: {erasures}, entries of the access list: {access}"
        taken = noted if erasures or access else "nothing to restore"
        sys.stdout.write(f"{taken}; no conversation, person or namespace is in there\n")
        return NOTHING_THERE
    for outcome, sentence in _SENTENCES.items():
        if counts[outcome]:
            sys.stdout.write(f"{counts[outcome]} {sentence}\n")
    return 0


class _Progress:
    """Says at most once a second how far the work is."""

    def __init__(self) -> None:
        self._said_at = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._said_at >= _PROGRESS_S or done == total:
            self._said_at = time.monotonic()
            sys.stderr.write(f"{done} of {total}\n")


async def _save(
    settings: BackupSettings, redis: str, options: argparse.Namespace, passphrase: str
) -> Counter[str]:
    is_journal = options.journal
    async with open_store(redis, settings) as client:
        store = _store(client, settings)
        await check_layout(client, store.keys)
        saving, now = Saving(store), await client.server_time()
        header = BackupHeader(settings.bot_id, LAYOUT, now, is_journal_only=is_journal)
        with BackupWriter(options.file, header, passphrase) as writer:
            async with _on_one_server(client):
                counts = await saving.save(writer, is_journal_only=is_journal, progress=_Progress())
        if not is_journal:
            await saving.note_done()
    return counts


async def _restore(
    settings: BackupSettings, redis: str, readers: Sequence[BackupReader], contents: Contents
) -> Counter[Outcome]:
    async with open_store(redis, settings) as client:
        store = _store(client, settings)
        await take_layout(client, store.keys)
        restoring = Restoring(store, memory_options(settings).tail)
        async with _on_one_server(client):
            return await restoring.restore(readers, contents, _Progress())


@asynccontextmanager
async def _on_one_server(client: RedisClient) -> AsyncIterator[None]:
    """Raise `BackupRefused` if Redis fails, or if it was restarted or replaced meanwhile.

    Another server may lack what was restored last, and a scan that goes on there may miss keys.
    """
    try:
        before = await client.info("server")
        yield
        after = await client.info("server")
    except StoreFull:
        raise BackupRefused("Redis is full: give it more memory, then run this again") from None
    except StoreError as error:
        raise BackupRefused(f"Redis has failed, so run this again: {error}") from None
    if before.get("run_id") != after.get("run_id"):
        raise BackupRefused("Redis was restarted or replaced meanwhile, so run this again")


def _store(client: RedisClient, settings: BackupSettings) -> Store:
    return Store(client, Keys(settings.bot_id), Scripts(client), memory_options(settings).ttl_s)


def _check_token(settings: BackupSettings) -> None:
    if settings.telegram_bot_token is None:
        sys.exit("TELEGRAM_BOT_TOKEN is not set: it names the bot that the memory belongs to")


def _passphrase(settings: BackupSettings, question: str, again: str = "") -> str:
    """Return the passphrase; ask for it only at a terminal. A new one, asked `again`, may be ""."""
    if settings.backup_passphrase is not None:
        return settings.backup_passphrase.get_secret_value()
    passphrase = getpass.getpass(question) if sys.stdin.isatty() else ""
    if passphrase and again and getpass.getpass(again) != passphrase:
        raise BackupRefused("the two passphrases differ")
    if not (passphrase or again):
        raise BackupRefused("the backup is encrypted, and BACKUP_PASSPHRASE is not set")
    return passphrase


def _refused(settings: BackupSettings, error: Exception, written: Path | None = None) -> int:
    text = str(error)
    if isinstance(error, EmbeddedBusy):
        text = f"a running bot uses the embedded Valkey in {settings.data_dir}: stop it first"
    elif isinstance(error, OSError) and (file := error.filename or written):
        text = f"{str(file).removesuffix('.partial')}: {error.strerror}"
    sys.stderr.write(f"{text}\n")
    return 1
