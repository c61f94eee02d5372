"""How much one person may have under way at once: turns over all chats, and files among them.

Without a bound one person could take every slot of a worker. A turn without a permit gives its
lease back and waits in Redis; it holds no slot, and its conversation keeps its order.

Permits are counted in each process for itself. With several workers one person may have that many
turns in each of them, which is the same share of all slots.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from bot.commands.answer import Answer
from bot.telegram.updates import IncomingMessage, from_bytes
from bot.turn.answer import Receive
from bot.turn.setting_aside import is_given_up
from memory.queue.open_turn import OpenTurn
from memory.store.errors import StoreError
from memory.store.keys import Scope

MAX_UPLOADS = 2
"""Files that a process reads at once, whoever sent them: each may take a processor and memory."""
_MAX_WAITING = 10_000
"""Conversations whose names are kept here; beyond that they wait until their time is due."""

_Bound = tuple[Literal["turns", "uploads"], int]
"""What is counted, and for whom; 0 stands for everybody."""


@dataclass(frozen=True, slots=True)
class PersonLimits:
    """What one person may have at once in one process."""

    max_turns: int = 4
    max_uploads: int = 1

    def of(self, bound: _Bound) -> int:
        """Return how many there may be."""
        kind, person = bound
        if kind == "turns":
            return self.max_turns
        return self.max_uploads if person else MAX_UPLOADS


@dataclass(slots=True)
class Permits:
    """Counts what is under way and remembers who waits; `ring` wakes a conversation."""

    limits: PersonLimits
    wake: Callable[[Scope], Awaitable[None]]
    _under_way: Counter[_Bound] = field(default_factory=Counter)
    _held: dict[Scope, list[_Bound]] = field(default_factory=dict)
    _waiting: dict[_Bound, dict[Scope, None]] = field(default_factory=dict)

    def take(self, turn: OpenTurn) -> bool:
        """Give a turn its permits, or note that its conversation waits; call `end` after it.

        Commands need none, and neither does a turn whose reply only has to be sent.
        """
        conversation, needed = turn.lease.conversation, _needed(turn)
        for bound in needed:
            if self._under_way[bound] >= self.limits.of(bound):
                waiting = self._waiting.setdefault(bound, {})
                if len(waiting) < _MAX_WAITING:
                    waiting[conversation] = None
                return False
        self._under_way.update(needed)
        self._held[conversation] = needed
        return True

    async def end(self, conversation: Scope) -> None:
        """Take back the permits of a conversation's turn and wake who waits for them."""
        await self._take_back(self._held.pop(conversation, []))

    async def end_upload(self, conversation: Scope) -> None:
        """Take back what a turn needed only while its file was read."""
        held = self._held.get(conversation, [])
        done = [bound for bound in held if bound[0] == "uploads"]
        self._held[conversation] = [bound for bound in held if bound not in done]
        await self._take_back(done)

    async def _take_back(self, done: list[_Bound]) -> None:
        self._under_way.subtract(done)
        woken = [each for bound in done for each in self._admissible(bound)]
        for conversation in dict.fromkeys(woken):
            with suppress(StoreError):  # it is rung for later all the same
                await self.wake(conversation)

    def _admissible(self, bound: _Bound) -> list[Scope]:
        """Return, and forget, as many of those that wait as there is room for."""
        free = self.limits.of(bound) - self._under_way[bound]
        if not self._under_way[bound]:
            del self._under_way[bound]
        waiting = self._waiting.get(bound, {})
        woken = list(waiting)[:free]
        for conversation in woken:
            del waiting[conversation]
        if not waiting:
            self._waiting.pop(bound, None)
        return woken


def freeing_uploads(receive: Receive, permits: Permits) -> Receive:
    """Return `receive` with the permits for a file given back once it is read.

    The words under it may take the model long; others' files need not wait for that.
    """

    async def receive_and_free(sent: IncomingMessage, conversation: Scope) -> Answer | None:
        try:
            return await receive(sent, conversation)
        finally:
            await permits.end_upload(conversation)

    return receive_and_free


def _needed(turn: OpenTurn) -> list[_Bound]:
    first = turn.entries[0]
    if turn.outbox or is_given_up(turn):
        return []
    person = first.sender_id
    # Only what is answered alone can be a command or a file; all else need not be unpacked for it.
    match from_bytes(first.body).kind if first.is_command else "text":
        case "command" | "stranger":
            return []
        case "document":
            return [("turns", person), ("uploads", person), ("uploads", 0)]
        case _:
            return [("turns", person)]
