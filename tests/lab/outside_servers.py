"""Model servers that we did not write: installed into a separate folder, started on loopback.

aimock (npm) answers chat completions, Responses and embeddings from fixtures. LiteLLM (PyPI)
forwards requests to it, translates them for another provider's API, or gives fixed answers.
"""

import asyncio
import json
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.acceptance.rig import KEY
from tests.valkey import HOST, free_port

AIMOCK = "@copilotkit/aimock@1.43"
LITELLM = "litellm[proxy]==1.106.2"
_INSTALL_S = 1200
_START_S = 120


class NotInstallable(Exception):
    """Raised when a server cannot be installed here; the text says why."""


async def install_aimock(folder: Path) -> Path:
    """Install aimock if it is missing; return the path of its command."""
    program = folder / "aimock/node_modules/@copilotkit/aimock/dist/cli.js"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise NotInstallable("node and npm are not installed")
        target = folder / "aimock"
        target.mkdir(parents=True, exist_ok=True)
        options = ("--prefix", str(target), "--no-audit", "--no-fund")
        await _run(npm, "install", *options, AIMOCK)
    return program


async def install_litellm(folder: Path) -> Path:
    """Install LiteLLM if it is missing (minutes and 750 MB); return the path of its program."""
    program = folder / "litellm/bin/litellm"
    if not program.exists():
        await _run(sys.executable, "-m", "venv", str(folder / "litellm"))
        await _run(str(folder / "litellm/bin/pip"), "install", "--quiet", LITELLM)
    return program


@asynccontextmanager
async def aimock(program: Path, folder: Path, fixtures: object) -> AsyncIterator[str]:
    """Yield the address of a running aimock that answers from `fixtures`."""
    file, port = folder / "fixtures.json", free_port()
    file.write_text(json.dumps({"fixtures": fixtures}))
    node = shutil.which("node") or "node"
    command = (node, str(program), "-f", str(file), "-p", str(port), "--log-level", "warn")
    async with _running(command, port, {}):
        yield f"http://{HOST}:{port}"


@asynccontextmanager
async def litellm(program: Path, folder: Path, models: object) -> AsyncIterator[str]:
    """Yield the address of a running proxy for `models` (LiteLLM's `model_list`) with `KEY`."""
    file, port = folder / "litellm.yaml", free_port()
    settings = {"model_list": models, "general_settings": {"master_key": KEY}}
    file.write_text(json.dumps(settings))  # JSON is YAML
    command = (str(program), "--config", str(file), "--host", HOST, "--port", str(port))
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    async with _running(command, port, quiet):
        yield f"http://{HOST}:{port}"


@asynccontextmanager
async def _running(
    command: tuple[str, ...], port: int, environment: Mapping[str, str]
) -> AsyncIterator[None]:
    server = await create_subprocess_exec(
        *command,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **environment},
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        await _until_listening(server, port)
        yield
    finally:
        if server.returncode is None:
            server.terminate()
            await server.wait()


async def _until_listening(server: Process, port: int) -> None:
    async with asyncio.timeout(_START_S):
        while server.returncode is None:
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.2)
                continue
            writer.close()
            return
    raise NotInstallable(f"it ended with status {server.returncode} when it was started")


async def _run(*command: str) -> None:
    process = await create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(_INSTALL_S):
        _, errors = await process.communicate()
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        raise NotInstallable(f"{Path(command[0]).name}: {' '.join(last) or process.returncode}")
