"""The HTTP side: `/bot<token>/<method>` and `/file/bot<token>/<path>`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from bot.playground.bot_api.methods import Method
from bot.playground.bot_api.parameters import Parameters, read_parameters
from bot.playground.bot_api.values import ApiError, NotFoundError
from bot.playground.bot_api.world import World

_MAX_BODY_BYTES = 50 * 2**20


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """What goes back: an HTTP status and the JSON body."""

    status: int
    body: Mapping[str, object]

    @classmethod
    def giving(cls, result: object) -> "ApiAnswer":
        """Return the answer of a call that went well."""
        return cls(200, {"ok": True, "result": result})

    @classmethod
    def refusing(cls, error: ApiError) -> "ApiAnswer":
        """Return the answer of a refused call."""
        body = {"ok": False, "error_code": error.status, "description": error.description}
        parameters = {"parameters": error.parameters} if error.parameters else {}
        return cls(error.status, body | parameters)

    @property
    def ok(self) -> bool:
        """Whether the call went well."""
        return self.status == 200


class HttpApi:
    """Answers calls that carry the token, by `methods`."""

    def __init__(self, token: str, world: World, methods: Mapping[str, Method]) -> None:
        self._token = token
        self._world = world
        self._methods = {name.lower(): (name, method) for name, method in methods.items()}

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/bot{token}/{method}", self._call, methods=["GET", "POST"]),
                Route("/file/bot{token}/files/{file_id}", self._download),
            ],
            exception_handlers={404: _not_found},
        )

    async def respond(
        self,
        request: Request,  # noqa: ARG002 - for the tests' server, which may cut its connection
        name: str,
        given: Parameters,
    ) -> Response:
        """Answer a call that could be read; `name` is the method as the call wrote it."""
        return written(await self.carry_out(name, given))

    async def carry_out(self, name: str, given: Parameters) -> ApiAnswer:
        """Return the answer of a method; its name may be in any case, as in Telegram."""
        _, method = self._methods.get(name.lower(), (name, _unknown))
        try:
            return ApiAnswer.giving(await method(self._world, given))
        except ApiError as error:
            return ApiAnswer.refusing(error)

    def documented_name(self, name: str) -> str:
        """Return a method's name as the Bot API writes it."""
        return self._methods.get(name.lower(), (name, None))[0]

    async def _call(self, request: Request) -> Response:
        try:
            self._check(request)
            given = read_parameters(
                request.url.query, request.headers.get("content-type", ""), await request.body()
            )
        except ApiError as error:
            return written(ApiAnswer.refusing(error))
        except ClientDisconnect:
            return Response()  # no client is there to read it
        return await self.respond(request, request.path_params["method"], given)

    async def _download(self, request: Request) -> Response:
        try:
            self._check(request)
            file = self._world.files.get(request.path_params["file_id"])
            if file is None:
                raise NotFoundError
        except ApiError as error:
            return written(ApiAnswer.refusing(error))
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


async def _unknown(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    raise NotFoundError("method not found")


async def _not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's
    return written(ApiAnswer.refusing(NotFoundError()))


def written(answer: ApiAnswer) -> Response:
    """Return an HTTP response; text beyond ASCII is escaped, half surrogate pairs too."""
    headers = {}
    parameters = answer.body.get("parameters")
    if isinstance(parameters, dict) and "retry_after" in parameters:
        headers["Retry-After"] = str(parameters["retry_after"])
    return Response(json.dumps(answer.body), answer.status, headers, "application/json")
