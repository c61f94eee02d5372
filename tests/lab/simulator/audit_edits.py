"""Checks what edits and stops do.

An edit changes a waiting message, or one that was answered already. A stop ends the open turn.
"""

import orjson

from bot.telegram.updates import from_bytes
from memory.queue.mailbox import Entry
from tests.lab.simulator.audit_turns import TurnAuditor
from tests.lab.simulator.markers import written_in
from tests.lab.simulator.records import AcceptedUpdate, SeenConversation
from tests.lab.simulator.store.keyspace import Args, Hash

_MAX_FAILURES = 3
"""A turn with more failures is given up without a notice."""


class EditAuditor(TurnAuditor):
    """Keeps which words each update stands for, and which turns were stopped."""

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

    def _edited(self, new: bytes, seen: SeenConversation) -> None:
        """Note that a waiting message has got new words; nobody may see the old ones again.

        If its turn was stopped, that turn is answered after all, with the new words.
        """
        entry = Entry.of_member(new)
        edit = from_bytes(entry.body).update_id
        if edit in self.records.edits:
            self.violated("an edit is made once", f"w{edit} again in w{entry.update_id}")
        self.records.edits.add(edit)
        taken = self.records.taken.get(seen.tag, [])
        if entry.update_id in taken:
            self.records.stopped.difference_update(taken)
        self.records.counts["edits of waiting messages"] += 1
        update = self.records.updates[entry.update_id]
        before, update.words = update.words, _words(entry)
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
        update, words = self.records.updates[entry.update_id], _words(entry)
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
        is_given_up = closing.is_notice and (closing.of or closing.failures > _MAX_FAILURES)
        older = [each for each in logged if each < update.update_id]
        if not is_given_up and about in map(self.world.message_of, older):
            self.violated("an edit changes the history", f"not w{update.update_id}")

    def _check_once(self, said: list[int], tag: str) -> None:
        """Check that no message is in the history twice, also not with other words."""
        messages = [self.world.message_of(each) for each in said]
        if len(messages) != len(set(messages)):
            self.violated("what was answered is remembered once", f"{sorted(said)} in {tag}")


def _words(entry: Entry) -> frozenset[int]:
    """Return the updates whose texts the turn of a waiting entry brings into the history."""
    update = from_bytes(entry.body)
    if update.replaced:
        return written_in(" ".join(message.text for message in update.replaced.question))
    return written_in(update.text) if update.kind == "text" else frozenset()
