"""Checks how turns begin, are given up, stopped and closed, and what edits do to them.

It computes the expected turn itself and does not trust the scripts.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

import orjson

from bot.telegram.updates import from_bytes
from bot.turn.outbox import Outbox
from memory.queue.mailbox import Entry
from tests.lab.simulator import markers
from tests.lab.simulator.client import Observer
from tests.lab.simulator.markers import written_in
from tests.lab.simulator.records import AcceptedUpdate, Closing, Records, SeenConversation
from tests.lab.simulator.store.keyspace import Args, Hash, Keyspace, Reply, SortedSet

if TYPE_CHECKING:
    from tests.lab.simulator.people import People

COALESCE_MS: Final = 300
MAX_COALESCE_MS: Final = 1_000
"""How soon after the newest and the oldest message of a turn others follow that belong to it."""

_GIVING_UP: Final = 3  # failures, or attempts without a reply, after which a turn may be given up

MAX_FAILURES: Final = 3  # a turn with more failures is given up without a notice

Note = Callable[[str, str], None]
"""Adds a line to the trace: which process or part, and what it did."""


class Violated(BaseException):
    """Raised when a promise is broken; the product's `except Exception` does not catch it."""


class TurnAuditor(Observer):
    """Observes one schedule, and checks its turns, edits and stops.

    `step` counts the server's steps, `violation` is the first broken promise.
    """

    world: "People"

    def __init__(self, space: Keyspace, note: Note | None) -> None:
        self.records = Records()
        self.step = 0
        self.violation = ""
        self._space = space
        self._turn = Hash()
        """The open turn as it was in the store before a commit or before it was given up."""
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
        members = [each for each in entries if isinstance(each, bytes)]
        self._check_taken([Entry.of_member(each).update_id for each in members], seen)

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

    def _stopped(self, seen: SeenConversation) -> None:
        """Note that the open turn may not be answered any more; the stop may have opened it."""
        turn = self._space.get(seen.turn, Hash) or Hash()
        ids = [int(each) for each in turn[b"taken"].split(b",")]
        self._check_taken(ids, seen)
        self.records.stopped.update(ids)
        self.records.counts["stops"] += 1

    def _check_stop(self, update: AcceptedUpdate) -> None:
        """Check that a stopped turn was not closed with an answer of the model."""
        made = self.records.replies.get(update.closing.reply) if update.closing else None
        if update.update_id in self.records.stopped and made and made.is_answer:
            self.violated("a stopped turn gets no answer", f"w{update.update_id}")

    def _edited(self, args: Args, seen: SeenConversation) -> None:
        """Note that a waiting message has got new words; nobody may see the old ones again.

        If its turn was stopped, that turn is answered after all, with the new words.
        """
        edit, new = orjson.loads(args[0])["update_id"], args[2]
        entry = Entry.of_member(new)
        if edit in self.records.edits:
            self.violated("an edit is made once", f"w{edit} again in w{entry.update_id}")
        self.records.edits.add(edit)
        taken = self.records.taken.get(seen.tag, [])
        if entry.update_id in taken:
            self.records.stopped.difference_update(taken)
        self.records.counts["edits of waiting messages"] += 1
        update = self.records.updates[entry.update_id]
        before, update.words = update.words, words_of(entry)
        # If only its dead letter was changed, the notice about its first words may still be sent.
        if new in (self._space.get(seen.mailbox, SortedSet) or {}):
            for word in before - update.words:
                self.records.erased.setdefault(word, self.step)

    def _revised(
        self, args: Args, seen: SeenConversation, lost: frozenset[int], new: frozenset[int]
    ) -> frozenset[int]:
        """Note what an edit or a retry has taken out of the history; return what is asked again."""
        request = orjson.loads(args[0])
        if not request.get("entry"):
            return frozenset()
        entry = Entry.of_member(args[request["entry"]])
        again = from_bytes(entry.body).replaced
        for message in again.question if again else ():
            if message.is_task:
                self.records.updates[message.message_ids[0]].is_answered_again = True
        if not lost:
            return frozenset()
        update, words = self.records.updates[entry.update_id], words_of(entry)
        owners = [
            each
            for each in self.records.updates.values()
            if each.tag == seen.tag and each.words & lost
        ]
        if not words:
            self.records.counts["edits of older messages"] += 1
            for owner in owners:
                owner.words = owner.words - lost | new
            return frozenset()
        self.records.counts["answered again"] += 1
        for owner in owners:
            owner.words, owner.is_answered_again = owner.words - lost, True
        asked = from_bytes(entry.body)
        # Somebody else may have asked for it with `/retry`.
        update.sender, update.words = entry.sender_id, words
        self.records.asked_again |= lost & words
        update.replaces = asked.replaced.answer_ids if asked.replaced else ()
        return lost & words

    def _check_edit(self, update: AcceptedUpdate, logged: frozenset[int]) -> None:
        """Check that no older words are in the history once the turn of an edit is closed."""
        closing, about = update.closing, self.world.message_of(update.update_id)
        assert closing is not None
        is_given_up = closing.is_notice and (closing.of or closing.failures > MAX_FAILURES)
        older = [each for each in logged if each < update.update_id]
        if not is_given_up and about in map(self.world.message_of, older):
            self.violated("an edit changes the history", f"not w{update.update_id}")

    def _check_once(self, said: list[int], tag: str) -> None:
        """Check that no message is in the history twice, also not with other words."""
        messages = [self.world.message_of(each) for each in said]
        if len(messages) != len(set(messages)):
            self.violated("what was answered is remembered once", f"{sorted(said)} in {tag}")


def trace_line(script: str, tag: str, args: Args, reply: Reply) -> str:
    if script.islower():
        return f"{script} {tag} -> {_shown(reply)}"
    return f"{script} {b' '.join(args[:3]).decode(errors='replace')[:60]}"


def _shown(reply: Reply) -> str:
    if isinstance(reply, list):
        return f"[{', '.join(_shown(part) for part in reply[:6])}]"
    return reply.decode(errors="replace")[:40] if isinstance(reply, bytes) else str(reply)


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


def words_of(entry: Entry) -> frozenset[int]:
    """Return the updates whose texts the turn of a waiting entry brings into the history."""
    update = from_bytes(entry.body)
    if update.replaced:
        return written_in(" ".join(message.text for message in update.replaced.question))
    return written_in(update.text) if update.kind == "text" else frozenset()
