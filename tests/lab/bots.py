"""Bots as processes, and their surroundings: a local Telegram, a local model, a Redis.

Telegram and model run in the benchmark's own process, so they do not add to a bot's CPU time.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.bot_api import BotApiServer, Chat, Person
from tests.servers.model_api import ChatRequest, ModelApiServer, Reply
from tests.valkey import ValkeyServer, free_port

ROOT = Path(__file__).parents[2]
KEY = "sk-benchmark"
EMBEDDINGS = "hashed-words"
REPLY = " ".join(f"word{number:03}" for number in range(60))
"""An answer that the local model streams in so many pieces."""

PATIENCE_S = 180
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Model:
    """Streams the same answer to everybody; a request for JSON gets empty values.

    `pause_s` is the time between two pieces of an answer.
    """

    pause_s = 0.0

    async def respond(self, request: ChatRequest) -> Reply:
        if request.response_format == "text":
            return Reply(REPLY, chunk_delay_s=self.pause_s)
        raw: Mapping[str, Any] = request.raw
        over_responses = request.api == "responses"
        asked = raw["text"]["format"] if over_responses else raw["response_format"]["json_schema"]
        return Reply(json.dumps(empty(asked["schema"])))


@dataclass(frozen=True, slots=True)
class World:
    """The surroundings of a bot: Telegram, a model, a Redis, and a folder for its files."""

    telegram: BotApiServer
    model: ModelApiServer
    valkey: ValkeyServer
    folder: Path
    api: str = "chat"
    stream: str = "drafts"
    embeddings: str = EMBEDDINGS

    def environment(self, port: int, redis: str) -> dict[str, str]:
        """Return the environment of a bot without hints; all other settings have their defaults."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TELEGRAM_BOT_TOKEN": self.telegram.token,
            "TELEGRAM_API_URL": self.telegram.url,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": self.model.base_url,
            "OPENAI_MODEL": "gpt-benchmark",
            "OPENAI_API": self.api,
            "STREAM": self.stream,
            "OPENAI_EMBEDDING_MODEL": self.embeddings,
            "REDIS_URL": redis,
            "PORT": str(port),
            "HINTS": "off",
        }

    def people(self, first: int, count: int) -> list[tuple[Person, Chat]]:
        persons = [self.telegram.user(first + at, f"Person {at}") for at in range(count)]
        return [(person, self.telegram.private_chat(person)) for person in persons]


@dataclass(frozen=True, slots=True)
class Running:
    """A running bot."""

    pid: int
    port: int

    @property
    def cpu_s(self) -> float:
        """User and system time so far, in seconds; counted by the kernel in steps of 10 ms."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND

    @property
    def resident_mb(self) -> float:
        """Resident memory in MB, shared memory included."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
        return round(int(line.split()[1]) / 1024, 1)

    async def ready(self) -> None:
        """Ask `/readyz` until it answers 200."""
        async with asyncio.timeout(PATIENCE_S):
            while not await self._is_ready():  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.01)

    async def _is_ready(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer.startswith(b"HTTP/1.1 200")


@asynccontextmanager
async def running(world: World, module: str, redis: str) -> AsyncIterator[Running]:
    """Run a bot inside the block; its log goes into the world's folder."""
    port = free_port()
    with (world.folder / f"{module}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module),
            cwd=ROOT,
            env=world.environment(port, redis),
            stdout=log,
            stderr=log,
        )
    try:
        yield Running(process.pid, port)
    except Exception:
        sys.stderr.write((world.folder / f"{module}.log").read_text()[-4_000:])
        raise
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def empty(schema: Mapping[str, object]) -> object:
    """Return the emptiest value of a JSON schema; optional objects are filled too."""
    match schema:
        case {"properties": dict(properties)}:
            return {name: empty(inner) for name, inner in properties.items()}
        case {"anyOf": [dict(filled), *_]} if "properties" in filled:
            return empty(filled)
        case {"type": "array"}:
            return []
        case {"type": "string"}:
            return ""
        case _:
            return None
