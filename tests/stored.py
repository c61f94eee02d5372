"""What somebody finds who has the whole database in their hands."""

import contextlib
from pathlib import Path

from memory.store.client import RedisClient


async def everything_stored(url: str) -> bytes:
    """Return the names and the values of all keys as a snapshot would hold them, uncompressed."""
    client = await RedisClient.open(url)
    await client.call("CONFIG SET", "rdbcompression", "no")
    names = await client.call("KEYS", "*")
    values = await client.pipeline([("DUMP", name) for name in names])
    await client.close()
    return b"\n".join([*names, *(value for value in values if value)])


def everything_on_disk(folder: Path) -> bytes:
    """Return what all files of a folder hold; one that vanishes meanwhile holds nothing."""
    found = b""
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found += file.read_bytes() if file.is_file() else b""
    return found
