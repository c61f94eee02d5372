"""A file is whole and unchanged, or it is refused with a sentence that says why."""

import os
import re
from collections.abc import Callable
from errno import EINVAL
from functools import cache
from itertools import starmap
from pathlib import Path
from stat import S_ISDIR
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest

from bot.features.backup import saving
from bot.features.backup.backup_file import BackupHeader, BackupReader, BackupRefused, BackupWriter
from bot.features.backup.restoring import check_files
from memory.store.keys import Keys, ScopeKeys
from memory.store.store import LAYOUT
from tests.bot.features.backup.conftest import PASSPHRASES

CANARY = "quokka"
# Random bytes do not compress, so each record fills a chunk of its own.
NOISE = [os.urandom(550_000).hex() for _ in range(3)]


def write(path: Path, passphrase: str = "", file_format: int = 1) -> Path:
    header = BackupHeader(bot_id=42, layout=2, created_at=1.0, format=file_format)
    with BackupWriter(path, header, passphrase) as writer:
        for number, noise in enumerate(NOISE):
            writer.write({"number": number, "word": CANARY, "noise": noise})
    return path


@cache
def written(passphrase: str) -> bytes:
    with TemporaryDirectory() as folder:
        return write(Path(folder) / "backup", passphrase).read_bytes()


def read(path: Path, passphrase: str) -> list[int]:
    reader = BackupReader(path)
    if passphrase:
        reader.unlock(passphrase)
    return [record["number"] for record in reader.records()]


def chunks(content: bytes) -> tuple[bytes, list[bytes]]:
    """Divide a file into its header and its chunks with their lengths."""
    at = content.index(b"\n", content.index(b"\n") + 1) + 1
    head, found = content[:at], []
    while at < len(content):
        size = 4 + int.from_bytes(content[at : at + 4], "big")
        found.append(content[at : at + size])
        at += size
    return head, found


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def cut(content: bytes) -> bytes:
    return content[:-10]


def without_last_chunk(content: bytes) -> bytes:
    head, found = chunks(content)
    return head + b"".join(found[:-1])


def swapped(content: bytes) -> bytes:
    head, (first, second, *rest) = chunks(content)
    return head + b"".join([second, first, *rest])


def with_chunk_behind(content: bytes) -> bytes:
    return content + chunks(content)[1][0]


EDITS = (
    *((b"bot_id.:42", other) for other in (b'bot_id":43', b'bot_ix":42')),
    *((rb'prefix":"\w*', b'prefix":"' + other) for other in (b"", b"ab", b"ab" * 99)),
    *((b'_check":"', other) for other in (b'_check":"\xc3\xa9', b'_check":null,"id":"')),
)


def with_header(pattern: bytes, written: bytes) -> Callable[[bytes], bytes]:
    return lambda content: re.sub(pattern, written, content, count=1)


@PASSPHRASES
def test_a_file_gives_back_what_was_written_and_only_its_owner_may_read_it(
    tmp_path: Path, passphrase: str
) -> None:
    path = write(tmp_path / "backup", passphrase)
    assert len(chunks(path.read_bytes())[1]) == 4
    assert read(path, passphrase) == [0, 1, 2]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["backup"]


@PASSPHRASES
@pytest.mark.parametrize(
    "damage",
    [
        *(flipped, cut, without_last_chunk, swapped, with_chunk_behind),
        lambda content: chunks(content)[0],
        *starmap(with_header, EDITS),
    ],
)
def test_a_changed_file_is_refused(
    tmp_path: Path, passphrase: str, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "backup"
    path.write_bytes(damage(written(passphrase)))
    with pytest.raises(BackupRefused, match="damaged or cut off"):
        read(path, passphrase)


def check(folder: Path, records: list[Any]) -> int:
    """Check a file with these records, which is otherwise whole; return how many scopes it has."""
    with BackupWriter(folder / "file", BackupHeader(42, LAYOUT, 1.0)) as writer:
        for record in [*records, {"kind": "end"}]:
            writer.write(record)
    return check_files([BackupReader(folder / "file")], 42, is_other_bot=False).scopes


SCOPE: dict[str, Any] = dict.fromkeys(saving._PLAIN, 1)
SCOPE |= {"kind": "scope", "tag": "c:7:0", "topic_named_by": ""}
SCOPE |= {"meta": {}, "learned": {}, "reminders": {}}
ROW = {"r": "user", "x": "1", "t": "tea", "s": "1", "i": "7", "n": "Ann", "m": "1", "k": "1"}


def a_scope(*, kind: str = "log", rows: object = (), **changed: object) -> list[Any]:
    return [SCOPE | changed, {"kind": kind, "rows": rows}, {"kind": "scope_end"}]


def test_another_format_and_another_kind_of_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BackupRefused, match="has format 9, and this version reads format 1"):
        BackupReader(write(tmp_path / "newer", file_format=9))
    other = tmp_path / "other"
    other.write_bytes(b"PK" * 100)
    with pytest.raises(BackupRefused, match="not a backup"):
        BackupReader(other)
    with pytest.raises(BackupRefused, match="No such file"):
        BackupReader(tmp_path / "missing")


def test_a_backup_that_fails_leaves_the_former_file_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "backup")
    before = path.read_bytes()
    header = BackupHeader(42, 2, 1.0)
    with pytest.raises(ZeroDivisionError), BackupWriter(path, header) as writer:
        writer.write({"number": 1 // 0})
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["backup"]


def test_a_backup_goes_through_a_link_and_replaces_no_device(tmp_path: Path) -> None:
    link, path = tmp_path / "link", tmp_path / "backup"
    link.symlink_to(path)
    assert (write(link).is_symlink(), path.is_file()) == (True, True)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BackupRefused, match="pipe is not a file"):
        write(tmp_path / "pipe")


def test_of_two_backups_to_a_name_the_later_counts_and_the_other_is_refused(tmp_path: Path) -> None:
    """The first one gave the name to what the second had written so far, and deleted the rest."""
    path = write(tmp_path / "backup")
    first, second = (BackupWriter(path, BackupHeader(42, 2, at)) for at in (2.0, 3.0))
    with second:
        second.write({"number": 1})
        with pytest.raises(BackupRefused, match="another backup to"), first:
            first.write({"number": 0})
        assert read(path, "") == [0, 1, 2]
    assert read(path, "") == [1]
    assert [each.name for each in tmp_path.iterdir()] == ["backup"]


def test_the_file_is_on_the_disk_before_its_name_and_then_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems refuse to sync a folder; the backup is whole then, too."""
    synced = []

    def sync(opened: int) -> None:
        synced.append(S_ISDIR(os.fstat(opened).st_mode))
        if synced[-1]:
            raise OSError(EINVAL, "Invalid argument")

    monkeypatch.setattr("os.fsync", sync)
    write(tmp_path / "backup")
    assert synced == [False, True]


def test_a_compressed_bomb_is_refused_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "backup")
    monkeypatch.setattr("bot.features.backup.backup_file._MAX_OPEN_BYTES", 1_000)
    with pytest.raises(BackupRefused, match="damaged"):
        read(path, "")
    header, record = BackupHeader(42, 2, 1.0), {"noise": NOISE[0]}
    refused = pytest.raises(BackupRefused, match="value in c:7:0 is too large")
    with refused, BackupWriter(tmp_path / "larger", header) as writer:  # nobody could restore it
        writer.write(record, of="c:7:0")
    assert [each.name for each in tmp_path.iterdir()] == ["backup"]


def test_a_record_of_too_many_values_is_refused_and_one_of_long_texts_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsed, a file of 98 kB with 64 MB of objects takes 2.3 GB."""
    monkeypatch.setattr("bot.features.backup.backup_file._MAX_BESIDE_TEXTS", 500)
    assert check(tmp_path, a_scope(rows=[[1, ROW | {"t": '\\,"[{' * 1_000}]])) == 1
    people = {str(number): "1" for number in range(300)}
    with pytest.raises(BackupRefused, match="damaged"):
        check(tmp_path, [{"kind": "access", "admitted": people, "refused": {}}])


@pytest.mark.parametrize(
    "journals",
    [
        [{"id|e|1|1-9999999999||": 1.0}],
        [{f"id|e|{number}||{number}000000-{number}999999|": 1.0 for number in range(1, 5)}],
        [{"id|e|1|" + "9" * 5_000 + "||": 1.0}],
        [{"id|e|1|x||": 1.0}],
        [{"id": 1.0}],
        [{"id|e|1|1-1500000||": 1.0}, {"id|e|1||1-1500000|": 1.0}],
        [{f"id {of_secret}|e|1|1-1500000||": 1.0 for of_secret in "ab"}],
    ],
)
def test_a_journal_that_names_too_many_numbers_is_refused(
    tmp_path: Path, journals: list[dict[str, float]]
) -> None:
    """The numbers that one changed line of an unencrypted file names may take 2 GB."""
    known = ("id|e|1|1-3,7|1-2|", "id|c|1|2", "id|p|1.500", "id|x|0a", "other|e|1|1-1500000||")

    def check_journals(*journals: dict[str, float]) -> None:
        secrets = {"a": "0a", "b": "0b"}
        check(tmp_path, [{"kind": "journal", "secrets": secrets, "entries": e} for e in journals])

    check_journals(dict.fromkeys(known, 1.0))
    with pytest.raises(BackupRefused, match="damaged"):
        check_journals(*journals)


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([{"kind": "polls"}], "holds 'polls', which this version does not know"),
        ([SCOPE, {"kind": "polls", "rows": []}, {"kind": "scope_end"}], "holds 'polls'"),
        ([{"kind": "scope"}], "damaged"),
        ([SCOPE], "damaged"),
        ([SCOPE, {"kind": "log", "rows": [[1, {"t": "\N{SNOWMAN}"}]]}], "damaged"),
        (a_scope(rows=[[0, ROW]]), "damaged"),
        (a_scope(rows=[[2, ROW], [1, ROW]]), "damaged"),
        (a_scope(rows=[[1, ROW | {"i": "Ann"}]]), "damaged"),
        (a_scope(kind="vectors", rows=[[1, {}]]), "damaged"),
        (a_scope(kind="records", rows=[[1, {"k": "fact", "j": "{}"}]]), "damaged"),
        (a_scope(tag="u:Ann"), "damaged"),
        *((a_scope(meta=each), "damaged") for each in ({"erasure": "x"}, {"moved_from": "c:8:0"})),
        (a_scope(reminders={"a": '7|1|1|0|0||["tea","","99 * * * *","UTC"]'}), "damaged"),
        (a_scope(reminders={"a": f"7|1|{'9' * 400}|0|0||[]"}), "damaged"),
        ([{"kind": "access", "admitted": {"7": "1"}, "refused": {"Ann": "1"}}], "damaged"),
        ([{"kind": "journal", "secrets": {}, "entries": []}], "damaged"),
        ([{"kind": "journal", "secrets": {"a": "x"}, "entries": {}}], "damaged"),
        ([{"kind": "journal", "secrets": {}, "entries": {"id|later|1": 1.0}}], "an entry, which"),
        (["end"], "damaged"),
    ],
)
def test_records_of_another_form_are_refused_before_anything_is_restored(
    tmp_path: Path, records: list[Any], why: str
) -> None:
    assert check(tmp_path, a_scope(rows=[[1, ROW], [3, ROW]])) == 1
    with pytest.raises(BackupRefused, match=why):
        check(tmp_path, records)


def test_the_header_says_what_is_in_the_file_and_nothing_of_the_passphrase(tmp_path: Path) -> None:
    path = write(tmp_path / "backup", "open sesame")
    assert b"sesame" not in (line := path.read_bytes().split(b"\n")[1])
    assert orjson.loads(line).items() >= {"format": 1, "bot_id": 42, "layout": 2}.items()
    with pytest.raises(BackupRefused, match="damaged"):
        read(path, "")


SCOPE_KEYS_LEFT_OUT = "lease turn mailbox seen confirm dead_letters off_record albums"


def test_every_key_of_a_scope_is_backed_up_or_left_out() -> None:
    listed = [*saving.HASHES, *saving.STREAMS, *SCOPE_KEYS_LEFT_OUT.split()]
    assert sorted(listed) == sorted(ScopeKeys._fields)


BOT_KEYS_KEPT = (
    "conversations scopes work learning person topic_name erasures erasure_secrets access"
)
"""Keys of the whole bot that are in a file, or that a restore writes from what it restores."""
BOT_KEYS_LEFT_OUT = """
    ready_queue jobs job due learner poller sweeper signals off_record dead_letters person_epoch
    erased layout restoring capacity ballast admins models send_rate usage
    noted_calls looks of_feature reloads
"""
"""Work that runs and who does it, and what belongs to this server or this month."""


def test_every_key_of_a_bot_is_restored_or_left_out() -> None:
    attributes = {name for name in vars(Keys(42)) if not name.startswith("_")} - {"prefix"}
    no_keys = {"scope", "base", "index_of"}
    methods = {name for name in vars(Keys) if not name.startswith("_")} - no_keys
    assert sorted(f"{BOT_KEYS_KEPT} {BOT_KEYS_LEFT_OUT}".split()) == sorted(attributes | methods)
