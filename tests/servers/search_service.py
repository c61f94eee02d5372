"""A local search service that answers like SearXNG and like Brave, with their refusals."""

import asyncio
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.servers.dropping import DroppingServer

BRAVE_PATH = "/res/v1/web/search"
KEY = "brave-key-of-the-operator"
_MB = 2**20


class SearchServer(DroppingServer):
    """Answers every search with `pages`: pairs of address and text.

    `queries` are the searches so far. `trouble` replaces the answer: a status, "html", "50 MB",
    "elsewhere" for a redirect, "silence", or JSON. While `allows_json` is false, SearXNG answers
    403, as it does by default.
    """

    def __init__(self, *pages: tuple[str, str]) -> None:
        self.pages = pages
        self.queries: list[str] = []
        self.trouble: int | str = 0
        self.allows_json = True
        self.sent_bytes = 0
        routes = [Route("/search", self._searxng), Route(BRAVE_PATH, self._brave)]
        super().__init__(Starlette(routes=routes))

    @property
    def brave(self) -> str:
        """The address of its API that is like Brave's."""
        return self.url + BRAVE_PATH

    async def _searxng(self, request: Request) -> Response:
        if request.query_params.get("format") != "json":
            return HTMLResponse("<title>SearXNG</title>")
        if not self.allows_json:
            return HTMLResponse("<h1>Forbidden</h1>", 403)
        found = [
            {"url": url, "title": f"About {url}", "content": text, "engine": "wiki", "score": 1.0}
            for url, text in self.pages
        ]
        return await self._answer(request, {"query": "", "number_of_results": 0, "results": found})

    async def _brave(self, request: Request) -> Response:
        if request.headers.get("x-subscription-token") != KEY:
            error = {"code": "SUBSCRIPTION_TOKEN_INVALID", "status": 422}
            return JSONResponse({"type": "ErrorResponse", "error": error}, 422)
        if len(request.query_params["q"].split()) > 50 or len(request.query_params["q"]) > 400:
            error = {"code": "VALIDATION", "status": 422}
            return JSONResponse({"type": "ErrorResponse", "error": error}, 422)
        found = [
            {"url": url, "title": f"About <strong>{url}</strong>", "description": text}
            for url, text in self.pages
        ]
        web = {"web": {"type": "search", "results": found}} if found else {}
        return await self._answer(request, {"type": "search", "query": {}, **web})

    async def _answer(self, request: Request, answer: object) -> Response:
        self.queries.append(request.query_params["q"])
        match self.trouble:
            case 0:
                return JSONResponse(answer)
            case int(status):
                return JSONResponse({"error": KEY}, status)
            case "elsewhere":
                return Response(None, 302, {"Location": f"{self.url}/elsewhere"})
            case "html":
                return HTMLResponse("<h1>Too many requests</h1>")
            case str(json) if json[0] in "[{":
                return Response(json, media_type="application/json")
            case "50 MB":
                return StreamingResponse(self._fifty_mb(), media_type="application/json")
        await asyncio.Event().wait()
        raise AssertionError

    async def _fifty_mb(self) -> AsyncIterator[bytes]:
        yield b'{"results": ["'
        for _ in range(50):
            self.sent_bytes += _MB
            yield b"x" * _MB
