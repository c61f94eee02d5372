"""How people talk under load, and how Telegram posts what they write.

They talk by a schedule made beforehand, or as soon as they are answered. As Telegram does by
default, it keeps 40 connections open and uses them in turn, with one request at a time on each. An
update waits until a connection is free. Unlike Telegram this never posts an update again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Self

import numpy as np
import numpy.typing as npt
import orjson

from memory.store.tasks import end_tasks
from tests.lab.lean_http import HOST
from tests.lab.lean_telegram import LeanTelegram, Update
from tests.lab.made_up import short_texts

CONNECTIONS = 40  # Telegram's default of `max_connections`

_Waiting = tuple[bytes, "asyncio.Future[Acknowledgement]"]
Times = npt.NDArray[np.float64]
Deliver = Callable[[Update], Awaitable[None]]

PATIENCE_S = 90


class NotAcknowledged(Exception):
    """Raised when a webhook does not answer, or answers with another status than 200."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An answer's status, and when it arrived, by the loop's clock."""

    status: int
    at: float


class Posting:
    """Posts to one webhook; used with `async with`."""

    def __init__(self, port: int, path: str, secret: str) -> None:
        self._port = port
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
            f"X-Telegram-Bot-Api-Secret-Token: {secret}\r\nContent-Length: "
        ).encode()
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._connections: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for _ in range(CONNECTIONS):
            opened = await asyncio.open_connection(HOST, self._port)
            self._connections.append(asyncio.create_task(self._post_all(*opened)))
        return self

    async def __aexit__(self, *_: object) -> None:
        await end_tasks(self._connections)

    def request(self, update: Update) -> bytes:
        body = orjson.dumps(update)
        return self._head + b"%d\r\n\r\n%b" % (len(body), body)

    def post(self, request: bytes) -> "asyncio.Future[Acknowledgement]":
        """Post as soon as a connection is free."""
        future: asyncio.Future[Acknowledgement] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((request, future))
        return future

    async def deliver(self, update: Update) -> None:
        """Post an update and wait for its acknowledgement; raise `NotAcknowledged`."""
        async with asyncio.timeout(PATIENCE_S):
            acknowledged = await self.post(self.request(update))
        if acknowledged.status != 200:
            raise NotAcknowledged(str(acknowledged.status))

    async def _post_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Post on one connection, until it is lost or this is cancelled."""
        while not writer.is_closing():
            request, future = await self._waiting.get()
            try:
                writer.write(request)
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                at = asyncio.get_running_loop().time()
                length = head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]
                await reader.readexactly(int(length))
                acknowledged = Acknowledgement(int(head.split(maxsplit=2)[1]), at)
            except (OSError, EOFError) as error:
                writer.close()
                if not future.done():
                    future.set_exception(NotAcknowledged(f"connection lost: {error}"))
            else:
                if not future.done():
                    future.set_result(acknowledged)


def arrivals(a_second: float, seconds: float, seed: int = 0) -> Times:
    """Return when messages of many people arrive, in seconds from 0: a Poisson process."""
    random = np.random.default_rng(seed)
    gaps = random.exponential(1 / a_second, int(a_second * seconds * 1.5) + 100)
    times: Times = np.cumsum(gaps)
    return times[times < seconds]


async def post_on_time(
    posting: Posting, updates: Sequence[Update], times: Times
) -> list[tuple[float, Acknowledgement]]:
    """Post each update at its time, without waiting for earlier ones.

    Return for each update when it was due, by the loop's clock, and its acknowledgement.
    """
    loop = asyncio.get_running_loop()
    requests = [posting.request(update) for update in updates]
    due = (loop.time() + times).tolist()
    answers = []
    for at, request in zip(due, requests, strict=True):
        await asyncio.sleep(at - loop.time())
        answers.append(posting.post(request))
    async with asyncio.timeout(PATIENCE_S):
        return list(zip(due, await asyncio.gather(*answers), strict=True))


@asynccontextmanager
async def talking(
    telegram: LeanTelegram, deliver: Deliver, persons: Sequence[int]
) -> AsyncIterator[None]:
    """Let people talk without pauses inside the block; raise the first error of one of them."""
    texts = short_texts(200)

    async def talk(person: int) -> None:
        for text in cycle(texts):
            replied = telegram.reply_in(person)
            async with asyncio.timeout(PATIENCE_S):
                await deliver(telegram.said(person, text))
                await replied

    tasks = [asyncio.create_task(talk(person)) for person in persons]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    errors = [end for end in ends if not isinstance(end, asyncio.CancelledError)]
    if errors and isinstance(errors[0], BaseException):
        raise errors[0]
