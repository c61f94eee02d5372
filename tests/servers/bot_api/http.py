"""The HTTP side of the tests' Telegram: it logs every call and lets faults strike."""

from collections.abc import AsyncIterator, Mapping
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from bot.playground.bot_api import http, parameters
from bot.playground.bot_api.http import written
from bot.playground.bot_api.methods import Method
from tests.servers.bot_api.calls import Call
from tests.servers.bot_api.faults import Faults, strike
from tests.servers.bot_api.parameters import strict
from tests.servers.bot_api.world import World
from tests.servers.dropping import drop_connection


class HttpApi(http.HttpApi):
    """Answers calls that carry the token; `calls` has every readable call, oldest first.

    With `growth_mb` a file has so many more MB than it was announced with.
    """

    def __init__(
        self, token: str, world: World, methods: Mapping[str, Method], faults: Faults
    ) -> None:
        super().__init__(token, world, methods)
        self.calls: list[Call] = []
        self.growth_mb = 0
        self._account = world.account
        self._faults = faults

    async def respond(self, request: Request, name: str, given: parameters.Parameters) -> Response:
        """Answer a call, unless a fault strikes it."""
        call = Call(self.documented_name(name), strict(given), self._account.clock())
        self.calls.append(call)
        await self._account.changes.tell()
        carry_out = partial(self.carry_out, name, call.given)
        fault = self._faults.next_for(call)
        answer = await (strike(fault, carry_out) if fault else carry_out())
        if answer is None:
            await drop_connection(request)
            return Response()
        call.answer = answer
        await self._account.changes.tell()
        return written(answer)

    async def _download(self, request: Request) -> Response:
        answer = await super()._download(request)
        return StreamingResponse(self._grown(answer)) if self.growth_mb else answer

    async def _grown(self, answer: Response) -> AsyncIterator[bytes]:
        yield bytes(answer.body)
        for _ in range(self.growth_mb):
            yield bytes(2**20)
