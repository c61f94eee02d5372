"""Two stores, one backed up and an empty one to restore into, and short ways to do both."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bot.features.backup import backup_file
from bot.features.backup.backup_file import BackupHeader, BackupReader, BackupWriter
from bot.features.backup.restoring import Outcome, Restoring, check_files
from bot.features.backup.saving import Saving
from memory.memory import Memory
from memory.store.store import LAYOUT
from tests.memory.conftest import memory_of, valkey
from tests.memory.words_embedder import WordsEmbedder
from tests.valkey import ValkeyServer, opened

__all__ = ["valkey"]


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()


@pytest.fixture(autouse=True)
def _keys_that_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backup_file._SCRYPT, "n", 2**6)


@pytest.fixture(scope="session")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with ValkeyServer(tmp_path_factory.mktemp("other")) as server:
        yield server


@pytest.fixture
async def empty(other_server: ValkeyServer) -> AsyncIterator[Memory]:
    """Give the memory of the same bot on another, empty server."""
    other_server.ask("FLUSHALL")
    async with opened(other_server.url) as client:
        yield memory_of(client, WordsEmbedder())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bot.backup"


BOT = 42
PASSPHRASES = pytest.mark.parametrize("passphrase", ["", "open sesame"], ids=["plain", "encrypted"])


async def save(
    memory: Memory, file: Path, passphrase: str = "", *, is_journal_only: bool = False
) -> Counter[str]:
    saving, now = Saving(memory.store), await memory.client.server_time()
    header = BackupHeader(BOT, LAYOUT, now, is_journal_only=is_journal_only)
    with BackupWriter(file, header, passphrase) as writer:
        return await saving.save(writer, is_journal_only=is_journal_only, progress=silent)


async def later_journal(memory: Memory, file: Path) -> Path:
    journal = file.with_name("journal")
    await save(memory, journal, is_journal_only=True)
    return journal


async def restore(memory: Memory, *files: Path, passphrase: str = "") -> Counter[Outcome]:
    readers = sorted(map(BackupReader, files), key=lambda each: -each.header.created_at)
    for reader in readers:
        if reader.header.salt:
            reader.unlock(passphrase)
    checked = check_files(readers, BOT, is_other_bot=False)
    return await Restoring(memory.store, tail=50).restore(readers, checked, silent)


def silent(_done: int, _total: int) -> None:
    """Show no progress."""
