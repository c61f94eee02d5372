"""Says where the event loop was held for long: nothing that is sent may stop it for everybody.

A thread looks at the loop's thread from outside, for a held loop cannot look at itself.
"""

import asyncio
import sys
import threading
import time
from types import FrameType

import structlog

log = structlog.get_logger(__name__)

MAX_HELD_S = 0.1
_FRAMES = 3
"""Innermost frames that are named; only their files and functions, never what is in them."""


class LoopWatchdog:
    """Watches the loop in which `run` is awaited; logs a warning for each time it was held."""

    def __init__(self, max_held_s: float = MAX_HELD_S) -> None:
        self._max_held_s = max_held_s
        self._beat_at = 0.0
        self._stopped = threading.Event()
        self._place = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        self._beat_at = time.monotonic()
        watching = threading.Thread(
            target=self._watch, args=(threading.get_ident(),), name="loop watchdog", daemon=True
        )
        watching.start()
        try:
            while True:
                await asyncio.sleep(self._max_held_s / 2)
                self._beat()
        finally:
            self._stopped.set()
            watching.join()

    def _beat(self) -> None:
        now = time.monotonic()
        held_s = now - self._beat_at - self._max_held_s / 2
        self._beat_at = now
        place, self._place = self._place, ""
        if held_s > self._max_held_s:
            log.warning("event loop held", ms=round(held_s * 1000), place=place or "unknown")

    def _watch(self, thread: int) -> None:
        """Note where the loop is while its beat is late; runs in a thread of its own."""
        while not self._stopped.wait(self._max_held_s / 2):
            if not self._place and time.monotonic() - self._beat_at > self._max_held_s:
                self._place = _place(sys._current_frames().get(thread))  # noqa: SLF001 - documented


def _place(frame: FrameType | None) -> str:
    """Name the innermost frames as `file:function`, the innermost first."""
    names: list[str] = []
    while frame is not None and len(names) < _FRAMES:
        code = frame.f_code
        names.append(f"{'/'.join(code.co_filename.split('/')[-2:])}:{code.co_qualname}")
        frame = frame.f_back
    return " < ".join(names)
