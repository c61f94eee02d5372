"""The file of a backup: a header, then chunks of records. A changed or moved chunk is refused.

    RICORDO BACKUP
    {"format": 1, "id": …, "bot_id": …, "layout": …, "created_at": …, …}
    length (4 bytes) | chunk …

A chunk is compressed records, each a JSON object after its length. The check of a chunk covers the
header, the position of the chunk and whether it is the last one (the STREAM construction of Hoang,
Reyhanitabar, Rogaway and Vizár, 2015). So a changed, swapped or missing chunk is found. Without a
passphrase the check is a BLAKE2b digest; with one, chunks are AES-256-GCM under a key from scrypt.
"""

import hmac
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b, scrypt, sha256
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, BinaryIO, Self

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import Field, TypeAdapter

FORMAT = 1
_MAGIC = b"RICORDO BACKUP\n"
_MAX_HEADER_BYTES = 4_096
_MAX_SEALED_BYTES = 64 * 2**20
_MAX_OPEN_BYTES = 256 * 2**20
_CHUNK_BYTES = 2**20
_MAX_BESIDE_TEXTS = 2**21
"""Bytes of a record that are no text. Each may be a value, which takes up to 250 bytes of memory;
the longest record of ours, an access list, has two for each person."""
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_LENGTH_BYTES = 4
_PREFIX_BYTES = 7  # the first part of all nonces
_SCRYPT = {"n": 2**15, "r": 8, "p": 1, "maxmem": 2**27, "dklen": 64}

_Hex = Annotated[str, Field(pattern="^(?:[0-9a-f]{2})*$")]

FileRecord = dict[str, Any]  # one JSON object of a file


class BackupRefused(Exception):
    """Raised if a backup cannot be made or restored; the text tells the operator why."""


@dataclass(frozen=True, slots=True)
class BackupHeader:
    """What a file says of itself; it holds no secret."""

    bot_id: int
    layout: int  # of names in the store (`memory.store.store`)
    created_at: float  # in Unix seconds
    is_journal_only: bool = False
    salt: _Hex = ""  # "" if the file is not encrypted; else `unlock` is needed before `records`
    passphrase_check: _Hex = ""
    format: int = FORMAT
    id: str = field(default_factory=lambda: token_hex(16))
    prefix: Annotated[_Hex, Field(min_length=14, max_length=14)] = field(
        default_factory=lambda: token_hex(_PREFIX_BYTES)
    )


_HEADER = TypeAdapter(BackupHeader)


class _Seal:
    def __init__(self, line: bytes, prefix: str, key: bytes) -> None:
        self._line = line
        self._prefix = bytes.fromhex(prefix)
        self._cipher = AESGCM(key) if key else None
        self._digest_key = sha256(line).digest()

    def seal(self, content: bytes, number: int, *, is_last: bool) -> bytes:
        nonce = self._nonce(number, is_last=is_last)
        if self._cipher:
            return self._cipher.encrypt(nonce, content, self._line)
        return content + self._digest(nonce + content)

    def open(self, sealed: bytes, number: int, *, is_last: bool) -> bytes:
        nonce = self._nonce(number, is_last=is_last)
        if self._cipher:
            try:
                return self._cipher.decrypt(nonce, sealed, self._line)
            except InvalidTag:
                raise damaged() from None
        content = sealed[:-16]
        if not hmac.compare_digest(self._digest(nonce + content), sealed[-16:]):
            raise damaged()
        return content

    def _nonce(self, number: int, *, is_last: bool) -> bytes:
        return self._prefix + number.to_bytes(4, "big") + bytes([is_last])

    def _digest(self, content: bytes) -> bytes:
        return blake2b(content, digest_size=16, key=self._digest_key).digest()


class BackupWriter:
    """Writes a file under a temporary name; it gets its own name when the block ends without error.

    Only the operator may read it (mode 0600). A crash leaves the temporary file, which the next
    backup to the same name replaces. Raise `BackupRefused` at the end if that happened meanwhile.
    """

    def __init__(self, path: Path, header: BackupHeader, passphrase: str = "") -> None:
        if path.exists() and not path.is_file():  # the file would replace a device
            raise BackupRefused(f"{path} is not a file: name one, or a new one")
        self._path = path = Path(os.path.realpath(path))  # a link stays one, also /dev/stdout
        self._partial = path.with_name(path.name + ".partial")
        key = b""
        if passphrase:
            salt = token_hex(16)
            key, check = _derived(passphrase, salt)
            header = replace(header, salt=salt, passphrase_check=check)
        line = orjson.dumps(asdict(header)) + b"\n"
        self._seal = _Seal(line, header.prefix, key)
        self._number = 0
        self._waiting = bytearray()
        self._partial.unlink(missing_ok=True)
        created = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file: BinaryIO = os.fdopen(created, "wb")
        self._file.write(_MAGIC + line)

    def write(self, record: FileRecord, of: str = "the store") -> None:
        """Append a record; raise `BackupRefused`, which names `of`, if it is too large."""
        content = orjson.dumps(record)
        self._waiting += len(content).to_bytes(_LENGTH_BYTES, "big") + content
        if len(self._waiting) > _CHUNK_BYTES:
            self._write_chunk(is_last=False, of=of)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file:
            try:
                if kind is None:
                    self._write_chunk(is_last=True)
                    self._file.flush()
                    os.fsync(self._file.fileno())
                    if not self._is_ours():
                        raise BackupRefused(f"another backup to {self._path} has begun meanwhile")
                    self._partial.replace(self._path)
                    _sync_folder(self._path.parent)
            finally:
                if self._is_ours():
                    self._partial.unlink()

    def _is_ours(self) -> bool:
        """Return whether the temporary name still belongs to this writer."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file.fileno()), self._partial.lstat())
        return False

    def _write_chunk(self, *, is_last: bool, of: str = "the store") -> None:
        content = zlib.compress(bytes(self._waiting), 6)
        sealed = self._seal.seal(content, self._number, is_last=is_last)
        if len(self._waiting) > _MAX_OPEN_BYTES or len(sealed) > _MAX_SEALED_BYTES:
            raise BackupRefused(f"one value in {of} is too large for a backup")
        self._file.write(len(sealed).to_bytes(_LENGTH_BYTES, "big") + sealed)
        self._number += 1
        self._waiting.clear()


def _sync_folder(folder: Path) -> None:
    """Have the new name of a file survive a power failure."""
    with suppress(OSError):  # Windows cannot open a folder, and some file systems sync none
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


class BackupReader:
    """Reads a file; every record that it yields was checked. Raise `BackupRefused`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = b""
        try:
            with path.open("rb") as file:
                self.header, self._line = _header_of(file)
        except OSError as error:
            raise BackupRefused(f"{path}: {error.strerror}") from None

    def unlock(self, passphrase: str) -> None:
        """Use a passphrase; raise `BackupRefused` if it is not the right one."""
        self._key, check = _derived(passphrase, self.header.salt)
        if not hmac.compare_digest(check, self.header.passphrase_check):
            raise BackupRefused(f"{self._path}: the passphrase is wrong")

    def records(self) -> Iterator[FileRecord]:
        """Yield all records in order."""
        seal, number = _Seal(self._line, self.header.prefix, self._key), 0
        with self._path.open("rb") as file:
            file.seek(len(_MAGIC) + len(self._line))
            sealed = _chunk_of(file)
            while sealed is not None:
                following = _chunk_of(file)
                yield from _records_of(seal.open(sealed, number, is_last=following is None))
                sealed, number = following, number + 1
        if not number:
            raise damaged()


def _header_of(file: BinaryIO) -> tuple[BackupHeader, bytes]:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise BackupRefused("this file is not a backup of Ricordo")
    line = file.readline(_MAX_HEADER_BYTES)
    try:
        described = orjson.loads(line)
        if described["format"] != FORMAT:
            raise BackupRefused(
                f"the file has format {described['format']}, and this version reads format "
                f"{FORMAT}: restore it with the version that wrote it, or a newer one"
            )
        return _HEADER.validate_json(line, strict=True), line
    except (ValueError, TypeError, KeyError):
        raise damaged() from None


def _chunk_of(file: BinaryIO) -> bytes | None:
    """Return the next sealed chunk, None at the end."""
    length = file.read(_LENGTH_BYTES)
    if not length:
        return None
    size = int.from_bytes(length, "big")
    sealed = file.read(size) if size <= _MAX_SEALED_BYTES else b""
    if len(length) < _LENGTH_BYTES or len(sealed) != size or size < 16:
        raise damaged()
    return sealed


def _records_of(compressed: bytes) -> Iterator[FileRecord]:
    inflating = zlib.decompressobj()
    try:
        content = memoryview(inflating.decompress(compressed, _MAX_OPEN_BYTES))
    except zlib.error:
        raise damaged() from None
    if not inflating.eof:
        raise damaged()
    at = 0
    while at < len(content):
        size = int.from_bytes(content[at : at + _LENGTH_BYTES], "big")
        start, at = at + _LENGTH_BYTES, at + _LENGTH_BYTES + size
        record = content[start:at]
        texts = islice(_TEXT.finditer(record), _MAX_BESIDE_TEXTS)
        if len(record) - sum(text.end() - text.start() for text in texts) > _MAX_BESIDE_TEXTS:
            raise damaged()
        yield orjson.loads(record)


def _derived(passphrase: str, salt: str) -> tuple[bytes, str]:
    both = scrypt(passphrase.encode(), salt=bytes.fromhex(salt), **_SCRYPT)
    return both[:32], sha256(both[32:]).hexdigest()


def damaged() -> BackupRefused:
    """Return the error for a file that is not as it was written."""
    return BackupRefused("the file is damaged or cut off: use another copy of it")
