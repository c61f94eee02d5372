"""The HTTP side: `/bot<token>/<method>` and `/file/bot<token>/<path>`.

It reads calls, lets the faults strike, keeps the log and writes answers; it knows no method.
"""

import json
from functools import partial

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from bot.playground.bot_api.calls import Answer, Call
from bot.playground.bot_api.errors import ApiError, NotFoundError
from bot.playground.bot_api.faults import Faults, strike
from bot.playground.bot_api.methods import Method, method_named
from bot.playground.bot_api.parameters import read_parameters
from bot.playground.bot_api.world import World
from bot.playground.loopback import drop_connection

_MAX_BODY_BYTES = 50 * 2**20


class HttpApi:
    """Answers whoever has the token; `calls` has every call that could be read, oldest first."""

    def __init__(self, token: str, world: World, faults: Faults) -> None:
        self.calls: list[Call] = []
        self._token = token
        self._world = world
        self._faults = faults

    def app(self) -> Starlette:
        """Return the application."""
        verbs = ["GET", "POST"]
        return Starlette(
            routes=[
                Route("/bot{token}/{method}", self._call, methods=verbs),
                Route("/file/bot{token}/files/{file_id}", self._download),
            ],
            exception_handlers={404: _not_found},
        )

    async def _call(self, request: Request) -> Response:
        name, method = method_named(request.path_params["method"])
        try:
            self._check(request)
            given = read_parameters(
                request.url.query, request.headers.get("content-type", ""), await request.body()
            )
        except ApiError as error:
            return _response(Answer.refusing(error))
        except ClientDisconnect:
            return Response()  # nobody is there to read it
        call = Call(name, given, self._world.account.clock())
        self.calls.append(call)
        await self._world.account.changes.tell()
        carry_out = partial(self._carry_out, call, method)
        fault = self._faults.next_for(call)
        answer = await (strike(fault, carry_out) if fault else carry_out())
        if answer is None:
            await drop_connection(request)
            return Response()
        call.answer = answer
        await self._world.account.changes.tell()
        return _response(answer)

    async def _carry_out(self, call: Call, method: Method) -> Answer:
        try:
            return Answer.giving(await method(self._world, call.given))
        except ApiError as error:
            return Answer.refusing(error)

    async def _download(self, request: Request) -> Response:
        try:
            self._check(request)
            file = self._world.files.get(request.path_params["file_id"])
            if file is None:
                raise NotFoundError
        except ApiError as error:
            return _response(Answer.refusing(error))
        return Response(file.content, media_type="application/octet-stream")

    def _check(self, request: Request) -> None:
        if "origin" in request.headers:  # a web page sent this; bots send no Origin
            raise ApiError(403, "Forbidden: web pages may not call this server")
        token = request.path_params["token"]
        if ":" not in token:
            raise ApiError(401, "Unauthorized: invalid token specified")
        if token != self._token:
            raise ApiError(401, "Unauthorized")
        if int(request.headers.get("content-length", 0)) > _MAX_BODY_BYTES:
            raise ApiError(413, "Request Entity Too Large")


async def _not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's
    return _response(Answer.refusing(NotFoundError()))


def _response(answer: Answer) -> Response:
    """Write an answer; everything beyond ASCII is escaped, half surrogate pairs too, as there."""
    headers = {}
    parameters = answer.body.get("parameters")
    if isinstance(parameters, dict) and "retry_after" in parameters:
        headers["Retry-After"] = str(parameters["retry_after"])
    return Response(json.dumps(answer.body), answer.status, headers, "application/json")
