"""Loads the Lua scripts that make each step atomic, ours and those in the folder of a feature.

A script's first line may name shared parts ("-- Uses: scope, notes"), which stand before it. Each
script takes one JSON object, and opaque bytes after it. The scripts of one scope take those of its
`ScopeKeys` that they use; the others say in their comments which keys they take.
"""

from functools import cache
from pathlib import Path

from memory.store.client import RedisClient
from memory.store.commands import Script

_LUA = Path(__file__).parent / "lua"
_USES = "-- Uses: "


@cache
def source(name: str, folder: Path = _LUA) -> str:
    """Return the text of a script after its shared parts; the server's clock is always one.

    Lines that are only a comment are left out: a process sends each text once, and Redis keeps it.
    """
    text = (folder / f"{name}.lua").read_text()
    first_line = text.partition("\n")[0]
    used = first_line.removeprefix(_USES).split(", ") if first_line.startswith(_USES) else []
    shared = [(_LUA / "shared" / f"{part}.lua").read_text() for part in ("clock", *used)]
    lines = "\n".join((*shared, text)).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


@cache
def script_names(folder: Path = _LUA) -> tuple[str, ...]:
    """Return the names of all scripts of a folder, in alphabetical order."""
    found = (entry.name for entry in folder.iterdir() if entry.is_file())
    return tuple(sorted(name.removesuffix(".lua") for name in found if name.endswith(".lua")))


class Scripts:
    """All scripts of a folder, ready to be called on one client."""

    def __init__(self, client: RedisClient, folder: Path = _LUA) -> None:
        self._scripts = {name: client.script(source(name, folder)) for name in script_names(folder)}

    def __getitem__(self, name: str) -> Script:
        """Return the script of this name; raise `KeyError` if there is none."""
        return self._scripts[name]
