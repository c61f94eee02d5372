"""How much may be under way in a process: turns and files of a person, files and pictures of all.

Without a bound one person could take every slot of a worker. A turn without a permit gives its
lease back and waits in Redis: it holds no slot, and its conversation keeps its order.

Each process counts permits for itself. With several workers one person may have that many turns in
each of them, which is the same share of all slots.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from bot.telegram.updates import from_bytes
from memory.queue.open_turn import OpenTurn, Run
from memory.store.errors import StoreError
from memory.store.keys import Scope

MAX_UPLOADS = 2
"""Files that a process reads at once for all people: each may take a processor and memory."""
MAX_PICTURES = 10
"""Pictures of one turn; an album has at most so many."""
SHORT_SOUND_BYTES = 2**20
"""Four minutes of a voice message. A longer sound counts as a file."""
_MAX_SHOWN = 20
"""Pictures that models look at at once, in all turns of a process: some 60 MB of its memory."""
_MAX_WAITING = 10_000
"""Conversations that are woken when a permit is free; others wait until their turn is due."""

_Kind = Literal["turns", "uploads", "pictures"]
_Permit = tuple[_Kind, int]
"""What is counted, and for which person; 0 stands for all people."""


@dataclass(slots=True)
class Permits:
    """Counts what is under way and remembers what waits; `wake` wakes a conversation.

    One person may have `max_turns` turns and one upload at once.
    """

    max_turns: int
    wake: Callable[[Scope], Awaitable[None]]
    _under_way: Counter[_Permit] = field(default_factory=Counter)
    _held: dict[Run, list[_Permit]] = field(default_factory=dict)
    _waiting: dict[_Permit, dict[Scope, None]] = field(default_factory=dict)

    def take(self, opened: OpenTurn) -> bool:
        """Give a turn its permits, or note that its conversation waits; call `end` after the turn.

        Commands need none, and neither does a turn that was stopped.
        """
        if opened.is_stopped:
            return True
        first = opened.entries[0]
        # An entry that is answered alone can be a command or a file.
        sent = [
            from_bytes(each.body)
            for each in opened.entries
            if each.is_alone or b'"photo"' in each.body or b'"voice"' in each.body
        ]
        if first.is_alone and sent[0].kind == "command":
            return True
        photos = [each for each in sent if each.kind == "photo"][:MAX_PICTURES]
        sounds = [each.file for each in sent if each.kind == "voice" and each.file]
        has_long_sound = not all(0 < each.nbytes <= SHORT_SOUND_BYTES for each in sounds)
        needed: list[_Permit] = [("turns", first.sender_id)]
        if photos or has_long_sound or any(each.is_file for each in sent):
            needed += [("uploads", first.sender_id), ("uploads", 0)]
        needed += [("pictures", 0)] * len(photos)
        for permit, count in Counter(needed).items():
            if count > self._free(permit):
                waiting = self._waiting.setdefault(permit, {})
                if len(waiting) < _MAX_WAITING:
                    waiting[opened.lease.conversation] = None
                return False
        self._under_way.update(needed)
        self._held[opened.run] = needed
        return True

    async def end(self, run: Run, *kinds: _Kind) -> None:
        """Take back the permits of a run, or those of these kinds; wake conversations that wait.

        A process may have two runs of one turn: one that has lost the lease and has not ended yet.
        """
        held = self._held.pop(run, [])
        done = [permit for permit in held if not kinds or permit[0] in kinds]
        if left := [permit for permit in held if permit not in done]:
            self._held[run] = left
        self._under_way.subtract(done)
        woken: dict[Scope, None] = {}
        for permit in done:
            waiting = self._waiting.get(permit, {})
            for conversation in list(waiting)[: self._free(permit)]:
                woken[conversation] = waiting.pop(conversation)
            if not waiting:
                self._waiting.pop(permit, None)
            if not self._under_way[permit]:
                del self._under_way[permit]
        for conversation in woken:
            with suppress(StoreError):  # its turn is tried again when it is due
                await self.wake(conversation)

    def _free(self, permit: _Permit) -> int:
        kind, person = permit
        max_uploads = 1 if person else MAX_UPLOADS
        limits = {"turns": self.max_turns, "pictures": _MAX_SHOWN, "uploads": max_uploads}
        return limits[kind] - self._under_way[permit]
