"""Checks how turns begin, are given up and are closed: what they take of the mail, and when."""

import orjson

from bot.turn.outbox import Outbox
from tests.lab.simulator import telling
from tests.lab.simulator.drain import begins_at, next_turn
from tests.lab.simulator.ledger import Closing, Seen
from tests.lab.simulator.store.keyspace import Hash, Keyspace, Reply, SortedSet
from tests.lab.simulator.witness import Note, Witness

_GIVING_UP = 3
"""Begins without a reply, or failures, after which a turn may be given up."""


class TurnAuditor(Witness):
    """Watches the turns in the store of one schedule."""

    def __init__(self, space: Keyspace, note: Note | None) -> None:
        super().__init__(note)
        self._space = space
        self._turn = Hash()
        """The open turn that stood in the store before a commit, or before it was given up."""

    def _check_given_up(self, notice: bytes, seen: Seen) -> None:
        """See that a turn was tried often enough; what is repeated finds its own notice."""
        attempts, failures = (int(self._turn.get(n, b"0")) for n in (b"attempts", b"failures"))
        unanswered = self._turn.get(b"outbox", notice) == notice
        if failures < _GIVING_UP and not (unanswered and attempts >= _GIVING_UP):
            what = f"{attempts} begins, {failures} failures in {seen.tag}"
            self.violated("a turn is given up after the third try", what)

    def _check_begun(self, begun: list[Reply], seen: Seen) -> None:
        """See which mail a turn takes, and when, unless it is taken over from somebody else."""
        head, _, entries, _ = begun
        assert isinstance(head, bytes)
        assert isinstance(entries, list)
        named = orjson.loads(head)
        token, turn = named["token"], named["id"]
        self.ledger.marked[token] = self.step
        self.ledger.begun[token, turn] = self.step
        if (seen.tag, turn) in self.ledger.opened:
            return
        self.ledger.opened.add((seen.tag, turn))
        ids = [int(_text(entry).split("|")[0]) for entry in entries]
        waiting = sorted(self._waiting(seen))
        mail = [self.ledger.mail[each] for each in waiting]
        what = f"{ids} of {waiting} in {seen.tag}"
        if waiting[: len(ids)] != ids:
            self.violated("mail is answered in order", what)
        if ids != next_turn(mail):
            self.violated("a turn is one sender's messages or one command", what)
        if self._space.now_ms() < begins_at(mail):
            self.violated("a fresh message waits for others", what)

    def _closing(self, seen: Seen) -> Closing:
        """Return with what the turn was closed that stood here before a commit."""
        stored = self._turn.get(b"outbox")
        if not stored:
            self.violated("a turn is closed with a reply", f"none in {seen.tag}")
        outbox = Outbox.from_bytes(stored)
        name = telling.part_name(outbox.parts[0].text) if outbox.parts else None
        reply = name.reply if name else 0
        failures = int(self._turn.get(b"failures", b"0"))
        return Closing(reply, len(outbox.parts), outbox.said, outbox.is_unread, failures)

    def _waiting(self, seen: Seen) -> frozenset[int]:
        return frozenset(map(int, (self._space.get(seen.mailbox, SortedSet) or {}).values()))


def _text(value: Reply) -> str:
    assert isinstance(value, bytes | int)
    return value.decode() if isinstance(value, bytes) else str(value)
