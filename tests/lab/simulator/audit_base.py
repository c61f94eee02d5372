"""What every auditor has: records, the trace, and a way to report a broken promise."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from tests.lab.simulator.client import Observer
from tests.lab.simulator.records import Records
from tests.lab.simulator.store.keyspace import Args, Reply

if TYPE_CHECKING:
    from tests.lab.simulator.people import People

Note = Callable[[str, str], None]
"""Adds a line to the trace: which process or part, and what it did."""


class Violated(BaseException):
    """Raised when a promise is broken; the product's `except Exception` does not catch it."""


class BaseAuditor(Observer):
    """Observes one schedule; `step` counts the server's steps, `violation` is the first found."""

    world: "People"

    def __init__(self, note: Note | None) -> None:
        self.records = Records()
        self.step = 0
        self.violation = ""
        self._note = note

    @property
    def is_traced(self) -> bool:
        return self._note is not None

    def note(self, who: str, what: str) -> None:
        """Add a line to the trace, if there is one."""
        if self._note is not None:
            self._note(who, what)

    def violated(self, promise: str, detail: str) -> NoReturn:
        """Keep the first broken promise, and end the task that broke it by raising `Violated`."""
        if not self.violation:
            self.violation = f"{promise}: {detail}"
            self.note("auditor", self.violation)
        raise Violated(self.violation)


def trace_line(script: str, tag: str, args: Args, reply: Reply) -> str:
    if script.islower():
        return f"{script} {tag} -> {_shown(reply)}"
    return f"{script} {b' '.join(args[:3]).decode(errors='replace')[:60]}"


def _shown(reply: Reply) -> str:
    if isinstance(reply, list):
        return f"[{', '.join(_shown(part) for part in reply[:6])}]"
    return reply.decode(errors="replace")[:40] if isinstance(reply, bytes) else str(reply)
