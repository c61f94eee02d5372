"""Signals: a process that runs a turn hears at once that something has happened to it.

A signal may be lost, so it only names a conversation. The facts are in the open turn and in the
mailbox. The process looks there after a signal, when it renews the lease and when it stores the
reply.

A stop of the turn that a person is waiting for overtakes the mailbox.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import structlog

from memory.queue.mailbox import Mailbox
from memory.store.client import RedisClient
from memory.store.errors import StoreError
from memory.store.keys import Scope
from memory.store.store import Store

log = structlog.get_logger(__name__)

_MIN_CONNECTIONS = 3
"""One waits for work and one for signals; at least one must be left."""
_PAUSE_S = 1.0


class Signals:
    """The signals of all conversations that this process works on."""

    def __init__(self, client: RedisClient, channel: str) -> None:
        self._client = client
        self._channel = channel
        self._events: dict[str, list[asyncio.Event]] = {}

    @contextmanager
    def heard(self, conversation: Scope) -> Iterator[asyncio.Event]:
        """Give an event that is set at each signal for this conversation while the block lasts."""
        event = asyncio.Event()
        events = self._events.setdefault(conversation.tag, [])
        events.append(event)
        try:
            yield event
        finally:
            events.remove(event)
            if not events:
                del self._events[conversation.tag]

    async def listen(self) -> None:
        """Listen until cancelled, over one connection; return at once if none can be spared."""
        if self._client.max_connections < _MIN_CONNECTIONS:
            return
        while True:
            try:
                async for tag in self._client.messages(self._channel):
                    self._set_events(tag.decode())
            except StoreError as error:
                log.warning("signals not heard", reason=type(error).__name__)
            await asyncio.sleep(_PAUSE_S)

    def _set_events(self, tag: str) -> None:
        """Set the events of a conversation; "" sets all, because signals may have been lost."""
        for events in [self._events.get(tag, [])] if tag else self._events.values():
            for event in events:
                event.set()


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
        answer = (await self._store.run("stop", conversation, request)).decode()
        if answer == "waits":
            await self._mailbox.wake(conversation)
            return "stopped"
        stopped: Stopped = answer
        return stopped
