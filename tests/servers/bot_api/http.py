"""The HTTP side: `/bot<token>/<method>` and `/file/bot<token>/<path>`.

It logs every call and lets faults strike.
"""

import json
from functools import partial

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from tests.servers.bot_api.calls import Answer, Call, Faults, strike
from tests.servers.bot_api.errors import ApiError
from tests.servers.bot_api.methods import METHODS
from tests.servers.bot_api.parameters import Parameters, read_parameters
from tests.servers.bot_api.world import World
from tests.servers.dropping import drop_connection

_MAX_BODY_BYTES = 50 * 2**20
_METHODS = {name.lower(): name for name in METHODS}


class HttpApi:
    """Answers calls that carry the token; `calls` has every readable call, oldest first."""

    def __init__(self, token: str, world: World, faults: Faults) -> None:
        self.calls: list[Call] = []
        self._token = token
        self._world = world
        self._account = world.account
        self._faults = faults

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/bot{token}/{method}", self._call, methods=["GET", "POST"]),
                Route("/file/bot{token}/files/{file_id}", self._download),
            ],
            exception_handlers={404: _not_found},
        )

    async def _call(self, request: Request) -> Response:
        try:
            self._check(request)
            given = read_parameters(
                request.url.query, request.headers.get("content-type", ""), await request.body()
            )
        except ApiError as error:
            return _written(Answer.refusing(error))
        except ClientDisconnect:
            return Response()  # no client is there to read it
        name = request.path_params["method"]  # in any case, as in Telegram
        call = Call(_METHODS.get(name.lower(), name), given, self._account.clock())
        self.calls.append(call)
        await self._account.changes.tell()
        carry_out = partial(self._carry_out, call.method, given)
        fault = self._faults.next_for(call)
        answer = await (strike(fault, carry_out) if fault else carry_out())
        if answer is None:
            await drop_connection(request)
            return Response()
        call.answer = answer
        await self._account.changes.tell()
        return _written(answer)

    async def _carry_out(self, name: str, given: Parameters) -> Answer:
        if name not in METHODS:
            return Answer.refusing(ApiError(404, "Not Found: method not found"))
        try:
            return Answer.giving(await METHODS[name](self._world, given))
        except ApiError as error:
            return Answer.refusing(error)

    async def _download(self, request: Request) -> Response:
        try:
            self._check(request)
        except ApiError as error:
            return _written(Answer.refusing(error))
        file = self._world.files.get(request.path_params["file_id"])
        if file is None:
            return await _not_found(request)
        return Response(file.content, media_type="application/octet-stream")

    def _check(self, request: Request) -> None:
        token = request.path_params["token"]
        if ":" not in token:
            raise ApiError(401, "Unauthorized: invalid token specified")
        if token != self._token:
            raise ApiError(401, "Unauthorized")
        if int(request.headers.get("content-length", 0)) > _MAX_BODY_BYTES:
            raise ApiError(413, "Request Entity Too Large")


async def _not_found(_request: Request, _error: Exception | None = None) -> Response:
    return _written(Answer.refusing(ApiError(404, "Not Found")))


def _written(answer: Answer) -> Response:
    """Return an HTTP response; text beyond ASCII is escaped, half surrogate pairs too."""
    headers = {}
    parameters = answer.body.get("parameters")
    if isinstance(parameters, dict) and "retry_after" in parameters:
        headers["Retry-After"] = str(parameters["retry_after"])
    return Response(json.dumps(answer.body), answer.status, headers, "application/json")
