"""Short ways to save and restore."""

from collections import Counter
from pathlib import Path

from bot.features.backup.backup_file import BackupReader, BackupWriter
from bot.features.backup.restoring import Outcome, Restoring, check_files
from bot.features.backup.saving import SavedCounts, Saving
from memory.memory import Memory
from memory.store.store import LAYOUT

BOT = 42


async def save(
    memory: Memory, file: Path, passphrase: str = "", *, is_journal_only: bool = False
) -> SavedCounts:
    await memory.client.call("SET", memory.keys.layout, LAYOUT)  # as the start of a bot does
    saving = Saving(memory.store, BOT)
    header = await saving.header(is_journal_only=is_journal_only)
    with BackupWriter(file, header, passphrase) as writer:
        return await saving.save(writer, is_journal_only=is_journal_only, progress=silent)


async def restore(memory: Memory, *files: Path, passphrase: str = "") -> Counter[Outcome]:
    readers = [BackupReader(file) for file in files]
    for reader in readers:
        if reader.header.salt:
            reader.unlock(passphrase)
    total = check_files(readers, BOT, is_other_bot=False)
    return await Restoring(memory.store, tail=50).restore(readers, total, silent)


def silent(_done: int, _total: int) -> None:
    """Show no progress."""
