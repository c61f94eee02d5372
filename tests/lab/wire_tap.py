"""A proxy in front of Redis that records every round trip, and sorts the trips by purpose.

It forwards all bytes unchanged, so a process behind it works as usual, only a little slower.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from memory.store.store import script_names, source

_CHUNK = 2**16
_ROOT = Path(__file__).parents[2]
_LUA = [_ROOT / "memory" / "store" / "lua", *(_ROOT / "bot" / "features").glob("*/lua")]
_SCRIPTS = {
    hashlib.sha1(source(name, folder).encode()).hexdigest(): name  # noqa: S324 - Redis's own name
    for folder in _LUA
    for name in script_names(folder)
}


@dataclass(slots=True)
class RoundTrip:
    """What a client sent before it waited, and the answer."""

    sent: bytes
    received: bytes = b""

    @property
    def nbytes(self) -> int:
        """Bytes in both directions."""
        return len(self.sent) + len(self.received)

    @property
    def names(self) -> list[str]:
        return [_name(command) for command in _commands(self.sent)]

    def is_about(self, name: bytes) -> bool:
        """Whether the request or the answer contains a name."""
        return name in self.sent or name in self.received


class WireTap:
    """Forwards connections to the server at `port` inside `async with`, and keeps all round trips.

    `passed` has them in the order in which their answers began.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.Task[None]] = set()
        self._news = asyncio.Condition()
        self.passed: list[RoundTrip] = []

    @property
    def url(self) -> str:
        """The address that a client uses as Redis."""
        assert self._server
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        if self._lines:  # a client that has just closed its connections is still on the way out
            await asyncio.wait(self._lines, timeout=1)
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def wait_for(self, found: Callable[[], bool], timeout_s: float = 60) -> None:
        """Return when `found` is true; it is asked whenever data passes. Raise `TimeoutError`."""
        async with asyncio.timeout(timeout_s), self._news:
            await self._news.wait_for(found)

    async def hold(self, sent: bytes) -> None:
        """Do nothing; a subclass may wait here before the client's data is forwarded."""

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = asyncio.current_task()
        assert line
        self._lines.add(line)
        back, to = await asyncio.open_connection("127.0.0.1", self._to)
        trips = _Line(self.passed)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, to, trips.asked, self.hold))
                group.create_task(self._pump(back, writer, trips.answered))
        except* OSError:
            pass  # one of the two has disconnected
        finally:
            for each in (writer, to):
                each.close()
            self._lines.discard(line)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        note: Callable[[bytes], None],
        hold: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> None:
        while data := await reader.read(_CHUNK):
            note(data)
            if hold:
                await hold(data)
            writer.write(data)
            await writer.drain()
            async with self._news:
                self._news.notify_all()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@dataclass(frozen=True, slots=True)
class Traffic:
    """The round trips of one turn, by purpose."""

    intake: Sequence[RoundTrip]
    turn: Sequence[RoundTrip]
    learning: Sequence[RoundTrip]

    @classmethod
    def of(cls, passed: Sequence[RoundTrip], person_id: int) -> "Traffic":
        """Sort the round trips from an intake until everything was learned.

        A round trip that names neither the conversation nor the person does not belong to the turn,
        except the acknowledgement of the wake-up. Learning begins after the commit.
        """
        tags = (f"c:{person_id}:".encode(), f"u:{person_id}".encode())
        ours = [trip for trip in passed if any(map(trip.is_about, tags)) or "ack" in trip.names]
        intake = [trip for trip in ours if {"intake", "XADD"} & set(trip.names)]
        committed = next(at for at, trip in enumerate(ours) if "commit" in trip.names)
        rest = [trip for trip in ours[committed + 1 :] if trip not in intake]
        end = [trip for trip in rest if "ack" in trip.names]
        return cls(
            intake=intake,
            turn=[trip for trip in ours[: committed + 1] if trip not in intake] + end,
            learning=[trip for trip in rest if trip not in end],
        )

    @property
    def steps(self) -> list[str]:
        """The commands of intake and turn, one entry for each round trip."""
        return ["+".join(trip.names) for trip in (*self.intake, *self.turn)]


def is_over(tap: WireTap, begun: int, *last: str) -> bool:
    """Whether the turn that began there is over; "unlease" waits for the learning after it, too."""
    names = [name for trip in tap.passed[begun:] for name in trip.names]
    return "commit" in names and {"ack", *last} <= {*names[names.index("commit") :]}


class _Line:
    """Separates the round trips of a connection: a new one begins with data after an answer."""

    def __init__(self, passed: list[RoundTrip]) -> None:
        self._passed = passed
        self._trip: RoundTrip | None = None

    def asked(self, data: bytes) -> None:
        if self._trip is None or self._trip.received:
            self._trip = RoundTrip(b"")
        self._trip.sent += data

    def answered(self, data: bytes) -> None:
        assert self._trip
        if not self._trip.received:
            self._passed.append(self._trip)
        self._trip.received += data


def _commands(sent: bytes) -> Iterator[list[bytes]]:
    """Read commands from RESP: `*2 $3 GET $1 x`, each token followed by a line end."""
    at = 0
    while at < len(sent):
        count, at = _number(sent, at)
        command = []
        for _ in range(count):
            length, at = _number(sent, at)
            command.append(sent[at : at + length])
            at += length + 2
        yield command


def _number(sent: bytes, at: int) -> tuple[int, int]:
    end = sent.index(b"\r\n", at)
    return int(sent[at + 1 : end]), end + 2


def _name(command: list[bytes]) -> str:
    verb = command[0].decode()
    if verb == "EVALSHA":
        return _SCRIPTS.get(command[1].decode(), verb)
    if verb == "EVAL":
        return _SCRIPTS.get(hashlib.sha1(command[1]).hexdigest(), verb)  # noqa: S324 - as above
    return verb
