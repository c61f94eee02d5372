"""A local OpenTelemetry collector and Sentry server: both keep what they are sent."""

import asyncio
import gzip
from typing import Any

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.servers.dropping import DroppingServer, until_disconnect


class MonitoringServer(DroppingServer):
    """Takes traces at `url` and errors at `dsn`; while `is_silent` it answers nothing."""

    def __init__(self) -> None:
        self.is_silent = False
        self.bodies: list[bytes] = []
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.errors: list[dict[str, Any]] = []
        self.asked = asyncio.Event()
        routes = [
            Route("/v1/traces", self._take_traces, methods=["POST"]),
            Route("/api/1/envelope/", self._take_errors, methods=["POST"]),
        ]
        super().__init__(Starlette(routes=routes))

    @property
    def dsn(self) -> str:
        return f"http://public@127.0.0.1:{self.port}/1"

    async def _take_traces(self, request: Request) -> Response:
        body = await self._read(request)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = (each.value for each in resource.resource.attributes if "name" in each.key)
            self.services |= {name.string_value for name in names}
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return Response(media_type="application/x-protobuf")

    async def _take_errors(self, request: Request) -> Response:
        body = await self._read(request)
        lines = body.splitlines()
        # After the head of the envelope, each entry has a head of its own.
        for head, entry in zip(lines[1::2], lines[2::2], strict=False):
            if orjson.loads(head)["type"] == "event":
                self.errors.append(orjson.loads(entry))
        return Response(b"{}")

    async def _read(self, request: Request) -> bytes:
        body = await request.body()
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.bodies.append(body)
        self.asked.set()
        if self.is_silent:
            await until_disconnect(request)
        return body
