"""Checks how turns begin, are given up and are closed: which updates they take, and when.

It computes the expected turn itself and does not trust the scripts.
"""

from collections.abc import Sequence
from typing import Final

import orjson

from bot.turn.outbox import Outbox
from tests.lab.simulator import markers
from tests.lab.simulator.audit_base import BaseAuditor, Note
from tests.lab.simulator.records import AcceptedUpdate, Closing, SeenConversation
from tests.lab.simulator.store.keyspace import Hash, Keyspace, Reply, SortedSet

COALESCE_MS: Final = 300
MAX_COALESCE_MS: Final = 1_000
"""How soon after the newest and the oldest message of a turn others follow that belong to it."""

_GIVING_UP: Final = 3
"""Failures, or attempts without a reply, after which a turn may be given up."""


class TurnAuditor(BaseAuditor):
    """Watches the turns in the store of one schedule."""

    def __init__(self, space: Keyspace, note: Note | None) -> None:
        super().__init__(note)
        self._space = space
        self._turn = Hash()
        """The open turn as it was in the store before a commit or before it was given up."""

    def _check_given_up(self, notice: bytes, seen: SeenConversation) -> None:
        """Check that a turn was tried often enough; a repeated call finds its own notice."""
        attempts, failures = (int(self._turn.get(n, b"0")) for n in (b"attempts", b"failures"))
        unanswered = self._turn.get(b"outbox", notice) == notice
        if failures < _GIVING_UP and not (unanswered and attempts >= _GIVING_UP):
            what = f"{attempts} attempts, {failures} failures in {seen.tag}"
            self.violated("a turn is given up after the third try", what)

    def _check_begun(self, begun: list[Reply], seen: SeenConversation) -> None:
        """Note who holds a turn since when, and check which updates it takes."""
        head, _, entries, *_ = begun
        assert isinstance(head, bytes)
        assert isinstance(entries, list)
        named = orjson.loads(head)
        token, turn = named["token"], named["id"]
        self.records.marked[token] = self.step
        self.records.begun[token, turn] = self.step
        self._check_taken([int(_text(entry).split("|")[0]) for entry in entries], seen)

    def _check_taken(self, ids: list[int], seen: SeenConversation) -> None:
        """Check which updates a turn takes, at first and when it begins again.

        Older updates that arrive later wait until this turn is closed.
        """
        before = self.records.taken.get(seen.tag, [])
        self.records.taken[seen.tag] = ids
        if before == ids:
            return
        waiting = sorted(self._waiting(seen))
        updates = [self.records.updates[each] for each in waiting]
        what = f"{ids} of {waiting} in {seen.tag}"
        if waiting[: len(ids)] != ids:
            self.violated("updates are answered in order", what)
        if not set(before) & set(ids):
            expected = next_turn(updates)
        else:
            self.records.counts["turns begun again"] += 1
            expected = [each for each in next_turn(updates) if each in (*before, *ids)]
            added = [each for each in updates if each.update_id in set(ids) - set(before)]
            first = [self.records.updates[each] for each in before]
            was_overtaken = waiting[0] not in before and is_quick(first, updates[:1])
            begins_afresh = was_overtaken and ids == next_turn(updates)
            if not begins_afresh and not is_quick(first, added):
                self.violated("only quick messages join a turn", what)
        if ids != expected:
            self.violated("a turn is one sender's messages or one command", what)

    def _closing(self, seen: SeenConversation) -> Closing:
        """Return the outbox with which a commit has closed the turn."""
        stored = self._turn.get(b"outbox")
        if not stored:
            self.violated("a turn is closed with a reply", f"none in {seen.tag}")
        outbox = Outbox.from_bytes(stored)
        name = markers.part_name(outbox.parts[0].text) if outbox.parts else None
        reply = name.reply if name else 0
        failures = int(self._turn.get(b"failures", b"0"))
        return Closing(reply, len(outbox.parts), outbox.said, outbox.is_unread, failures)

    def _waiting(self, seen: SeenConversation) -> frozenset[int]:
        return frozenset(map(int, (self._space.get(seen.mailbox, SortedSet) or {}).values()))


def next_turn(waiting: Sequence[AcceptedUpdate]) -> list[int]:
    """Return what a turn takes, oldest first: one sender's messages, or one command."""
    taken = [waiting[0].update_id]
    for update in waiting[1:]:
        if not (waiting[0].is_text and update.is_text and update.sender == waiting[0].sender):
            break
        taken.append(update.update_id)
    return taken


def is_quick(taken: Sequence[AcceptedUpdate], added: Sequence[AcceptedUpdate]) -> bool:
    """Tell whether messages came soon enough to be answered with those that a turn has taken."""
    oldest = min(update.arrived_ms for update in taken)
    newest = max(update.arrived_ms for update in taken)
    for update in added:
        if update.arrived_ms >= min(newest + COALESCE_MS, oldest + MAX_COALESCE_MS):
            return False
        newest = max(newest, update.arrived_ms)
    return True


def _text(value: Reply) -> str:
    assert isinstance(value, bytes | int)
    return value.decode() if isinstance(value, bytes) else str(value)
