"""A Bot API on loopback that follows a script and logs its calls.

It speaks just enough HTTP/1.1 for one client. Each connection serves one call.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl

TOKEN = "42:TOKEN-for-tests"


@dataclass(frozen=True)
class Reply:
    """An answer; a body of bytes is sent unchanged."""

    body: object
    status: int = 200


@dataclass(frozen=True)
class Call:
    """A method and its form values as they were sent."""

    method: str
    parameters: dict[str, str]


# "cut" closes the connection after reading the request; "hang" never answers.
Act = Reply | Literal["cut", "hang"]


def ok(result: object) -> Reply:
    return Reply({"ok": True, "result": result})


def refusal(status: int, description: str, **parameters: int) -> Reply:
    body: dict[str, object] = {"ok": False, "error_code": status, "description": description}
    if parameters:
        body["parameters"] = parameters
    return Reply(body, status)


DONE = ok(result=True)
SENT = ok({"message_id": 77, "date": 1, "chat": {"id": 5, "type": "private"}, "text": "x"})


def delivering_to(url: str) -> Reply:
    """Return what getWebhookInfo answers while a webhook delivers to `url`."""
    return ok({"url": url, "has_custom_certificate": False, "pending_update_count": 3})


@dataclass
class ScriptedApi:
    """Plays its acts in order, then answers `true` to everything."""

    url: str = ""
    acts: deque[Act] = field(default_factory=deque)
    calls: list[Call] = field(default_factory=list)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)

    def script(self, *acts: Act) -> None:
        self.acts.extend(acts)

    def named(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            call, path = await _read_call(reader)
            self.calls.append(call)
            act = self.acts.popleft() if self.acts else DONE
            if act == "hang":
                self.hanging.set()
                await reader.read()  # returns when the other side has gone
                self.abandoned.set()
            elif isinstance(act, Reply):
                body = act.body if isinstance(act.body, bytes) else json.dumps(act.body).encode()
                body = body.replace(b"$PATH", path.encode())
                head = f"HTTP/1.1 {act.status} X\r\nContent-Length: {len(body)}\r\n"
                head += "Set-Cookie: route=café\r\nConnection: close\r\n\r\n"  # of an odd proxy
                writer.write(head.encode() + body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _read_call(reader: asyncio.StreamReader) -> tuple[Call, str]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    lines = head.split("\r\n")
    path = lines[0].split(" ")[1]
    lengths = [line for line in lines if line.lower().startswith("content-length:")]
    body = await reader.readexactly(int(lengths[0].split(":")[1]) if lengths else 0)
    return Call(path.rsplit("/", 1)[1], dict(parse_qsl(body.decode()))), path


@asynccontextmanager
async def scripted_api() -> AsyncIterator[ScriptedApi]:
    api = ScriptedApi()
    server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    api.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield api
    finally:
        server.close()
        await server.wait_closed()
