"""An MCP server that we start as a command and talk to over its input and output.

The transport of the library keeps a line of any length in memory; this one does not.
"""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared._context_streams import (
    ContextReceiveStream,
    ContextSendStream,
    create_context_streams,
)
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

_GRACE_S = 0.5
"""After its input was closed, a server has this long to end by itself."""

Check = Callable[[bytes], Awaitable[bool]]
"""Returns false for a line that holds too much."""
FromServer = ContextReceiveStream[SessionMessage | Exception]
ToServer = ContextSendStream[SessionMessage]


@asynccontextmanager
async def started(
    command: Sequence[str], env: Mapping[str, str], max_bytes: int, check: Check
) -> AsyncIterator[tuple[FromServer, ToServer]]:
    """Start a command and end it with the block; raise `OSError` if it cannot be started.

    A line of more than `max_bytes`, or one that fails the check, ends the connection. The command
    gets the variables of `env`, and of ours only a few harmless ones such as PATH. Its error output
    is dropped.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=max_bytes,
        env={**get_default_environment(), **env},
        start_new_session=True,
    )
    try:
        write_incoming, incoming = create_context_streams[SessionMessage | Exception](0)
        outgoing, read_outgoing = create_context_streams[SessionMessage](0)
        async with incoming, outgoing, anyio.create_task_group() as group:
            group.start_soon(_read, process, write_incoming, check)
            group.start_soon(_write, process, read_outgoing)
            try:
                yield incoming, outgoing
            finally:
                group.cancel_scope.cancel()
    finally:
        await _end(process)


async def _read(
    process: Process, incoming: ContextSendStream[SessionMessage | Exception], check: Check
) -> None:
    assert process.stdout  # noqa: S101 - it was started with a pipe
    async with incoming:
        # A line that is too long raises `ValueError`, and so does one that is no message.
        with suppress(ValueError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while (line := await process.stdout.readline()) and await check(line):
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                await incoming.send(SessionMessage(message))


async def _write(process: Process, outgoing: ContextReceiveStream[SessionMessage]) -> None:
    assert process.stdin  # noqa: S101 - it was started with a pipe
    async with outgoing:
        with suppress(OSError):
            async for each in outgoing:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(f"{text}\n".encode())
                await process.stdin.drain()


async def _end(process: Process) -> None:
    """Close the input, then kill the process and all that it has started."""
    assert process.stdin  # noqa: S101 - it was started with a pipe
    process.stdin.close()
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(_GRACE_S):
            await process.wait()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
