"""Reports of the processes about themselves, written only while an operator watches.

A report holds counts, times and fixed words. It expires a few seconds after the last one, so a
process that died disappears.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex
from typing import NoReturn

import structlog

from memory.store.errors import StoreError
from memory.store.keys import Scope
from memory.store.store import Store

log = structlog.get_logger(__name__)

WATCHED = Scope("watched")
"""An entry in the stream `erased`, which every process reads anyway. It says: an operator watches.

Older versions take it for an erasure of a scope that does not exist.
"""

WATCHED_S = 15.0
"""How long every process goes on reporting after each look."""
_EVERY_S = 2.0
_EXPIRES_MS = 6_000
_REPORTERS_S = 60
_MAX_REPORTERS = 64
MAX_REPORT_BYTES = 32_768


class ProcessReports:
    """Writes the report of this process, and reads those of all."""

    def __init__(self, store: Store) -> None:
        self.process = f"{socket.gethostname()[:24]}-{os.getpid()}-{token_hex(2)}"
        self._client = store.client
        self._keys = store.keys
        self._watched_until = 0.0
        self._watched = asyncio.Event()

    async def watch(self) -> None:
        """Have every process report for the next seconds; raise `StoreError`."""
        stream = (self._keys.erased, "MAXLEN", "~", 10_000, "*", "c", WATCHED.tag)
        await self._client.pipeline(
            [("XADD", *stream), ("EXPIRE", self._keys.erased, _REPORTERS_S)]
        )
        self.note_watched()

    def note_watched(self) -> None:
        """Report for the next seconds."""
        self._watched_until = asyncio.get_running_loop().time() + WATCHED_S
        self._watched.set()

    async def keep_writing(self, report: Callable[[], bytes]) -> NoReturn:
        """Write what `report` returns again and again while somebody watches, until cancelled."""
        while True:
            await self._watched.wait()
            with suppress(StoreError):
                await self.write(report())
            await asyncio.sleep(_EVERY_S)
            if asyncio.get_running_loop().time() > self._watched_until:
                self._watched.clear()

    async def write(self, report: bytes) -> None:
        """Write a report; one that is too long is left out. Raise `StoreError`."""
        if len(report) > MAX_REPORT_BYTES:
            log.warning("report too long", nbytes=len(report))
            return
        await self._client.pipeline(
            [
                ("SET", self._keys.report_of(self.process), report, "PX", _EXPIRES_MS),
                ("SADD", self._keys.reporters, self.process),
                ("EXPIRE", self._keys.reporters, _REPORTERS_S),
            ]
        )

    async def read(self) -> list[bytes]:
        """Return the reports of the processes that live, in the order of their names."""
        names = await self._client.call("SMEMBERS", self._keys.reporters)
        names = sorted(name.decode() for name in names)[:_MAX_REPORTERS]
        if not names:
            return []
        reports = await self._client.pipeline(
            [("GET", self._keys.report_of(name)) for name in names]
        )
        return [report for report in reports if report is not None]
