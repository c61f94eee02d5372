"""Stand-ins with a script and a log: time that passes at once, a lease, a mailbox."""

import asyncio
from collections.abc import Mapping

from bot.telegram.errors import IntakeClosed


class Pauses:
    """Passes at once and remembers how long each pause would have been."""

    def __init__(self) -> None:
        self.taken_s: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken_s.append(seconds)
        await asyncio.sleep(0)


class ScriptedLease:
    """Held, except for the first `refusals` times."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.released = asyncio.Event()

    async def hold(self) -> bool:
        self.refusals -= 1
        return self.refusals < 0

    async def release(self) -> None:
        self.released.set()


class Mailbox:
    """Takes updates, after raising each of `failures` once."""

    def __init__(self, *failures: Exception) -> None:
        self.taken: list[Mapping[str, object]] = []
        self.failures = list(failures)

    @property
    def ids(self) -> list[object]:
        return [raw["update_id"] for raw in self.taken]

    async def accept(self, raw: Mapping[str, object], **_: bool) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.taken.append(raw)


class ClosedMailbox:
    """Takes only updates of these ids until it is opened; then of others what overtakes nothing."""

    def __init__(self, *urgent: int) -> None:
        self.ids: list[object] = []
        self.urgent = urgent
        self.is_open = False

    async def accept(self, raw: Mapping[str, object], *, after_refusal: bool = False) -> None:
        if raw["update_id"] not in self.urgent and (after_refusal or not self.is_open):
            raise IntakeClosed
        self.ids.append(raw["update_id"])
