"""Updates that wait for the bot: the queue behind getUpdates."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from bot.playground.bot_api.account import Changes


@dataclass(frozen=True, slots=True)
class Update:
    """Something that happened; a webhook gets the updates of one `lane` one after another."""

    id: int
    kind: str
    lane: str
    body: Mapping[str, object]

    def shape(self) -> dict[str, object]:
        """Return the update in JSON."""
        return {"update_id": self.id, self.kind: self.body}


@dataclass(slots=True, eq=False)
class Waiting:
    """A delivery that is due; an `owed` one stays below a confirmed offset until handed out."""

    update: Update
    owed: bool = False


class UpdateQueue:
    """The bot's queue; `history` has every update, oldest first."""

    def __init__(self, changes: Changes, first_id: int) -> None:
        self.history: list[Update] = []
        self._changes = changes
        self._ids = count(first_id)
        self._waiting: list[Waiting] = []
        self._poll = 0

    @property
    def pending_count(self) -> int:
        """How many deliveries are not confirmed."""
        return len(self._waiting)

    async def add(self, kind: str, lane: str, body: Mapping[str, object]) -> None:
        """Append an update."""
        update = Update(next(self._ids), kind, lane, body)
        self.history.append(update)
        self._waiting.append(Waiting(update))
        await self._changes.tell()

    def confirm(self, offset: int) -> None:
        """Drop updates below `offset`; a negative offset keeps only that many of the newest."""
        if offset < 0:
            self._waiting = self._waiting[offset:]
        elif offset:
            self._waiting = [w for w in self._waiting if w.owed or w.update.id >= offset]

    def begin_poll(self) -> int:
        """Return the number of a new poll; it ends the one before."""
        self._poll += 1
        return self._poll

    def is_polled_by(self, poll: int) -> bool:
        """Whether this poll has not been ended by another."""
        return poll == self._poll

    def due(self) -> bool:
        """Whether there is something to hand out."""
        return bool(self._waiting)

    def hand_out(self, limit: int) -> list[Update]:
        """Return what is due, at most `limit`; it stays in the queue until it is confirmed."""
        handed = self._waiting[:limit] if self.due() else []
        for waiting in handed:
            waiting.owed = False
        return [waiting.update for waiting in handed]
