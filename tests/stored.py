"""Everything that an attacker with a copy of the database or of a folder can read."""

import contextlib
from pathlib import Path

from tests.valkey import opened


async def everything_stored(url: str, pattern: str = "*") -> bytes:
    """Return the names and values of keys as in a snapshot, uncompressed."""
    async with opened(url) as client:
        await client.call("CONFIG SET", "rdbcompression", "no")
        names = sorted(await client.call("KEYS", pattern))
        values = await client.pipeline([("DUMP", name) for name in names])
    return b"\n".join([*names, *(value for value in values if value)])


def everything_on_disk(folder: Path) -> bytes:
    """Return the contents of all files of a folder; files that vanish meanwhile are skipped."""
    found = b""
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found += file.read_bytes() if file.is_file() else b""
    return found
