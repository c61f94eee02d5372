"""What every auditor has: the ledger, the trace, and a way to say that a promise was broken."""

from collections.abc import Callable
from typing import NoReturn, Protocol

from tests.lab.simulator.client import Observer
from tests.lab.simulator.ledger import Ledger
from tests.lab.simulator.store.keyspace import Args, Reply

Note = Callable[[str, str], None]
"""Notes in the trace who did what."""


class Violated(BaseException):
    """Raised when a promise is broken; no `except Exception` of the product holds it up."""


class World(Protocol):
    """What an auditor asks the world."""

    def is_coming(self, tag: str) -> bool:
        """Tell whether Telegram still has something for a conversation."""
        ...

    def sent_at(self, update_id: int) -> int:
        """Return when a message was sent, in Unix seconds."""
        ...

    def is_text(self, update_id: int) -> bool:
        """Tell whether an update is somebody's words."""
        ...

    def forgetting(self, person: int) -> int:
        """Return the newest update in which a person confirmed to be forgotten, 0 for none."""
        ...


class Witness(Observer):
    """Sees one schedule; `step` counts what the server did, `violation` is what broke first."""

    world: World

    def __init__(self, note: Note | None) -> None:
        self.ledger = Ledger()
        self.step = 0
        self.violation = ""
        self._note = note

    @property
    def is_traced(self) -> bool:
        """Whether anybody reads the trace."""
        return self._note is not None

    def note(self, who: str, what: str) -> None:
        """Note a thing in the trace, if there is one."""
        if self._note is not None:
            self._note(who, what)

    def violated(self, promise: str, detail: str) -> NoReturn:
        """Remember the first broken promise and end whatever broke it."""
        if not self.violation:
            self.violation = f"{promise}: {detail}"
            self.note("auditor", self.violation)
        raise Violated(self.violation)


def told(script: str, tag: str, args: Args, reply: Reply) -> str:
    """Return a step's line of the trace."""
    if script.islower():
        return f"{script} {tag} -> {_shown(reply)}"
    return f"{script} {b' '.join(args[:3]).decode(errors='replace')[:60]}"


def _shown(reply: Reply) -> str:
    if isinstance(reply, list):
        return f"[{', '.join(_shown(part) for part in reply[:6])}]"
    return reply.decode(errors="replace")[:40] if isinstance(reply, bytes) else str(reply)
