"""A Bot API on loopback that follows a script and logs its calls."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.servers.dropping import DroppingServer, drop_connection, until_disconnect

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


class ScriptedApi(DroppingServer):
    """Plays its acts in order, then answers `true` to everything."""

    def __init__(self) -> None:
        self.acts: deque[Act] = deque()
        self.calls: list[Call] = []
        self.hanging = asyncio.Event()
        self.abandoned = asyncio.Event()
        route = Route("/{path:path}", self._play, methods=["GET", "POST"])
        super().__init__(Starlette(routes=[route]))

    def script(self, *acts: Act) -> None:
        self.acts.extend(acts)

    def named(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    async def _play(self, request: Request) -> Response:
        path = request.url.path
        form = parse_qsl((await request.body()).decode())
        self.calls.append(Call(path.rpartition("/")[2], dict(form)))
        act = self.acts.popleft() if self.acts else DONE
        if isinstance(act, Reply):
            body = act.body if isinstance(act.body, bytes) else json.dumps(act.body).encode()
            body = body.replace(b"$PATH", path.encode())
            return Response(body, act.status, {"Set-Cookie": "route=café"})  # of an odd proxy
        if act == "cut":
            await drop_connection(request)
        else:
            self.hanging.set()
            await until_disconnect(request)
            self.abandoned.set()
        return Response()
