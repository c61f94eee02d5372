"""Lists and calls the tools of one MCP server, each time over a new connection.

The only file that speaks MCP. All that a server sends is bounded while it is read. The text of an
exception never leaves this file, because it may hold an address or words of a person.

If a server is a command, the library would keep a line of any length in memory. So `started` takes
the place of the library's own client for commands.
"""

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import compress, islice
from typing import Any, Self
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.client import Client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.methods import parse_server_result

from bot.features.mcp.settings import McpServer
from bot.http_client import Body, HttpClient, trusted
from memory.behaviors.tool import ToolError
from memory.behaviors.tool_output import OutgoingFile, ToolOutput
from memory.store.tasks import in_turns

MAX_BYTES = 8 * 2**20  # that come over one connection; in base64 a file of 5 MB takes 6.7 MB
_MAX_VALUES = 100_000
"""Values of JSON, lines and pieces of one connection. Each takes up to 500 bytes of memory. Commas,
opening brackets and line ends are counted, also those inside texts."""
_MAX_REQUESTS = 100  # of one connection: a server may have us connect again, or ask something
_MAX_LISTED = {"tools": 256, "content": 1_000}  # so many first ones of a page, of a result
_MAX_FIELDS = 16  # beside the tools of a page, for the library's check of one tool
_LARGE_BYTES = 2**18
_LARGE_AT_ONCE = 2  # connections with more than `_LARGE_BYTES`; others wait before they read on
_LARGE: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = WeakKeyDictionary()
_MAX_PAGES = 8
_MAX_FILES = 10
_MAX_NAME_CHARS = 300
_MAX_CHARS = 100_000  # of a text that are kept; the toolbox shortens it to the limit of a tool

# These log what servers send.
for _name in ("mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


class ServerAway(Exception):
    """Raised if the tools of a server cannot be listed, for whatever reason."""


class _Connection:
    """Counts what one connection reads; a large one waits until few others are in memory."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._slots = _LARGE.setdefault(loop, asyncio.Semaphore(_LARGE_AT_ONCE))
        self._has_slot, self._lock = False, asyncio.Lock()
        self._nbytes = self._values = self.requests = 0

    async def take(self, piece: bytes) -> bool:
        """Count a piece, and wait if it is much; return false if the server has sent too much."""
        self._nbytes += len(piece)
        self._values += 1 + sum(map(piece.count, (b",", b"[", b"{", b"\n")))
        if self._nbytes > _LARGE_BYTES:
            async with self._lock:  # two answers that come at once take one slot
                self._has_slot = self._has_slot or await self._slots.acquire()
        return self._nbytes <= MAX_BYTES and self._values <= _MAX_VALUES

    def end(self) -> None:
        if self._has_slot:
            self._slots.release()


@dataclass(eq=False)
class _BoundedStream(Body):
    connection: _Connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.stream:
            if not await self.connection.take(chunk):
                raise httpx2.StreamError("the server has sent too much")
            yield chunk


class _BoundedClient(HttpClient):
    """Ends an answer that is too large, and takes no compressed ones, which could become larger."""

    def __init__(self, connection: _Connection, **options: Any) -> None:
        super().__init__(verify=trusted(), **options)
        self._connection = connection
        self.event_hooks["request"].append(self._count)
        self.event_hooks["response"].append(self._bound)

    async def _count(self, request: httpx2.Request) -> None:
        self._connection.requests += 1
        if self._connection.requests > _MAX_REQUESTS:
            raise httpx2.RemoteProtocolError("too many requests", request=request)
        request.headers["accept-encoding"] = "identity"

    async def _bound(self, response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.RemoteProtocolError("the answer is compressed", request=response.request)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, self._connection)


class OutsideServer:
    """Lists and calls the tools of one server; `timeout_s` bounds each of the two."""

    def __init__(self, server: McpServer, timeout_s: float) -> None:
        self.name = server.name
        self._server = server
        self._timeout_s = timeout_s

    async def list_tools(self, max_tools: int) -> list[types.Tool]:
        """Return valid tools page by page, until there are `max_tools`; raise `ServerAway`."""
        found: list[types.Tool] = []
        try:
            async with self._connected() as client:
                cursor: str | None = None
                for _ in range(_MAX_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if cursor is None or len(found) >= max_tools:
                        break
        except Exception as error:  # noqa: BLE001 - the library raises groups of many kinds
            raise ServerAway(type(_innermost(error)).__name__) from None
        return found

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Run a tool and return what it says; raise `ToolError`."""
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        try:
            async with self._connected() as client:
                # Over a new connection, `Client.call_tool` would list all tools after the call.
                result = await client.session.send_request(
                    types.CallToolRequest(params=params), types.CallToolResult
                )
        except Exception as error:  # noqa: BLE001 - as above
            match _innermost(error):
                case TimeoutError():
                    why = "did not answer in time"
                case MCPError():  # also if the connection ends while we wait
                    why = "refused the call or sent an answer that cannot be used"
                case _:
                    why = "cannot be reached"
            raise ToolError(f"the server {self.name} {why}; it may have done it or not") from None
        text = "\n".join(filter(None, map(_shown, result.content)))[:_MAX_CHARS]
        if result.is_error:
            raise ToolError(f"the tool says: {text}")
        files = islice(filter(None, map(_file, result.content)), _MAX_FILES)
        return ToolOutput(text or "done; the tool says nothing", files)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        connection = _Connection()
        with anyio.fail_after(self._timeout_s):
            async with AsyncExitStack() as stack:
                stack.callback(connection.end)
                if self._server.command:
                    env = {key: value.get_secret_value() for key, value in self._server.env}
                    transport: Any = started(self._server.command, env, connection)
                else:
                    secrets = self._server.headers
                    headers = {key: value.get_secret_value() for key, value in secrets}
                    http = _BoundedClient(connection, headers=headers, timeout=self._timeout_s)
                    await stack.enter_async_context(http)
                    transport = streamable_http_client(
                        self._server.url, http_client=http, max_sse_event_size=MAX_BYTES
                    )
                sent, outgoing = await stack.enter_async_context(transport)
                incoming = _ValidTools(sent)
                transport = nullcontext((incoming, outgoing))
                client = await stack.enter_async_context(Client(transport, cache=None))
                incoming.version = client.protocol_version
                yield client


class _ValidTools:
    """Leaves out tools of a wrong shape: for one of them the library would refuse the list.

    The library checks an answer in one step of the loop. So it gets no more of it than we use.
    """

    def __init__(self, sent: "FromServer") -> None:
        self._sent = sent
        self.version = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sent.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        message = await anext(self._sent)
        match message:
            case SessionMessage(types.JSONRPCResponse(result=result)):
                parts = [result.get("serverInfo")]
                for name, max_count in _MAX_LISTED.items():
                    if isinstance(listed := result.get(name), list):
                        del listed[max_count:]
                        parts += listed
                for part in parts:
                    if isinstance(part, dict):
                        part.pop("icons", None)
                if isinstance(tools := result.get("tools"), list):
                    # A version may require fields beside the tools; the short ones are enough here.
                    short = (pair for pair in result.items() if isinstance(pair[1], str | int))
                    beside = dict(islice(short, _MAX_FIELDS))
                    valid = (self._takes(beside, each) for each in tools)
                    result["tools"] = list(compress(tools, await in_turns(valid, 16)))
        return message

    def _takes(self, beside: Mapping[str, object], tool: object) -> bool:
        try:
            parse_server_result("tools/list", self.version, {**beside, "tools": [tool]})
        except ValueError:
            return False
        return True


def _shown(content: types.ContentBlock) -> str:
    """Return the text of a part of a result, or a line that says what else came.

    A file says nothing here: the toolbox tells whether it is sent.
    """
    match content:
        case types.TextContent():
            return content.text
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return resource.text
        case types.ImageContent() | types.AudioContent() | types.EmbeddedResource():
            return ""
        case _:
            return f"[{content.type} came; it is not shown]"


def _file(content: types.ContentBlock) -> OutgoingFile | None:
    match content:
        case types.ImageContent():
            name, data = "picture", content.data
        case types.AudioContent():
            name, data = "sound", content.data
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            name, data = str(resource.uri)[-_MAX_NAME_CHARS:].rpartition("/")[2], resource.blob
        case _:
            return None
    try:
        return OutgoingFile(unquote(name), b64decode(data))
    except ValueError:
        return OutgoingFile(name)


def _innermost(error: BaseException) -> BaseException:
    """Return the first exception inside the groups that task groups raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


_GRACE_S = 0.5  # a server may take so long to end after its input was closed

FromServer = MemoryObjectReceiveStream[SessionMessage | Exception]


@asynccontextmanager
async def started(
    command: Sequence[str], env: Mapping[str, str], connection: _Connection
) -> AsyncIterator[tuple[FromServer, MemoryObjectSendStream[SessionMessage]]]:
    """Start a command and end it with the block; raise `OSError` if it cannot be started.

    Too many bytes or values, or a line that is no message, end the connection. The command gets the
    variables of `env` and a few harmless ones of ours, such as PATH. Its error output is dropped.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=MAX_BYTES,
        env={**get_default_environment(), **env},
        start_new_session=True,
    )
    try:
        write_incoming, incoming = anyio.create_memory_object_stream[Any]()
        outgoing, read_outgoing = anyio.create_memory_object_stream[SessionMessage]()
        async with incoming, outgoing, anyio.create_task_group() as group:
            group.start_soon(_read, process, write_incoming, connection)
            group.start_soon(_write, process, read_outgoing)
            try:
                yield incoming, outgoing
            finally:
                group.cancel_scope.cancel()
    finally:
        await _end(process)


async def _read(
    process: Process, incoming: MemoryObjectSendStream[Any], connection: _Connection
) -> None:
    assert process.stdout  # noqa: S101 - it was started with a pipe
    async with incoming:
        # A line that is too long raises `ValueError`, and so does one that is no message.
        with suppress(ValueError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while line := await process.stdout.readline():
                if not await connection.take(line):
                    break
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                await incoming.send(SessionMessage(message))


async def _write(process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin  # noqa: S101 - it was started with a pipe
    async with outgoing:
        with suppress(OSError):
            async for each in outgoing:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(f"{text}\n".encode())
                await process.stdin.drain()


async def _end(process: Process) -> None:
    """Close the input and wait a moment, then kill the process and its group."""
    assert process.stdin  # noqa: S101 - it was started with a pipe
    process.stdin.close()
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(_GRACE_S):
            await process.wait()
        if sys.platform != "win32":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        # It kills the process, and closes its output: `wait` would wait until all of it is read.
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        await process.wait()
