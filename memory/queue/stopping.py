"""Stops the turn that a person is waiting for. It overtakes the mailbox."""

from dataclasses import dataclass
from typing import Literal

from memory.queue.mailbox import Mailbox
from memory.store.keys import Scope
from memory.store.store import Store

Stopped = Literal["stopped", "answered", "not_yours", "nothing"]
"""What a stop found: a turn that is stopped now, one whose reply exists already, one that another
person asked for, or none."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Who wants to stop, and by which update; `draft` is the draft whose button it was, or 0."""

    update_id: int
    person: int
    draft: int = 0


class Stopping:
    """Marks open turns as stopped; their workers hear of it at once."""

    def __init__(self, store: Store, mailbox: Mailbox) -> None:
        self._store = store
        self._mailbox = mailbox

    async def stop(self, conversation: Scope, stop: Stop, *, as_admin: bool = False) -> Stopped:
        """Stop the turn that was asked before, or the question that waits; safe to repeat."""
        conversation = await self._mailbox.resolve(conversation)
        request: dict[str, object] = {
            "update_id": stop.update_id,
            "person": str(stop.person),
            "signals": self._store.keys.signals,
            "ttl_s": self._store.ttl_s,
        }
        if as_admin:
            request["by_admin"] = True
        if stop.draft:
            request["draft"] = stop.draft
        keys = self._store.keys.scope(conversation).turn_keys
        answer = (await self._store.scripts["stop"](keys, request)).decode()
        if answer == "waits":
            await self._mailbox.wake(conversation)
            return "stopped"
        stopped: Stopped = answer
        return stopped
