"""Checks the protocol's promises at every atomic step of the store. `audit` checks what is sent."""

from collections.abc import Iterable
from functools import cache

import orjson

from memory.queue.mailbox import Entry
from memory.queue.ready_queue import GROUP
from memory.store.keys import Keys, Scope
from tests.lab.simulator import markers
from tests.lab.simulator.audit_turns import Note, TurnAuditor, trace_line, words_of
from tests.lab.simulator.markers import History, entry_text, history_of, written_in_log
from tests.lab.simulator.records import AcceptedUpdate, SeenConversation
from tests.lab.simulator.store.keyspace import Args, Hash, Keyspace, Reply, SortedSet
from tests.lab.simulator.store.streams import MIN_ID, Group, Stream

_FENCED = frozenset({"outbox", "sending", "park", "renew", "set_aside", "failed", "hand_over"})
_MARKING = frozenset({"outbox", "sending", "set_aside"})
_ERASING = frozenset({"clear", "wipe", "erase_person", "revise", "drop_entry"})
_ERASING_ALL = frozenset({"clear", "wipe", "erase_person"})
_CLOSING = {"commit": "commit"} | dict.fromkeys(_ERASING, "erased")
_REFUSALS = (b"refused", b"erased", b"superseded")
_READING = frozenset({"read_scope", "read_unlearned"})
_REMOVES_WAKE_UPS = frozenset(
    {"ack", "remove_consumers", "take_due", "DEL", "XACK", "XDEL", "ZREM"}
)
"""What can remove a wake-up or a due time without changing a conversation."""

_UNREAD = Group(MIN_ID)


class StoreAuditor(TurnAuditor):
    """Watches the store of one schedule."""

    def __init__(self, space: Keyspace, keys: Keys, note: Note | None) -> None:
        super().__init__(space, note)
        self._keys = keys
        self._ready_queue = keys.ready_queue.encode()
        self._due = keys.due.encode()
        self._held = False

    def not_simulated(self, what: str) -> None:
        """End a schedule in which the bot used a command that is not simulated."""
        self.violated("everything is simulated", what)

    def before(self, script: str, keys: Args, args: Args) -> None:
        """Note whether a fenced step comes from the lease holder and names the current versions."""
        if script in _FENCED or script == "commit":
            fields = self._space.get(keys[0], Hash) or Hash()
            versions = fields.get(b"epoch", b"0"), fields.get(b"erasure", b"0")
            step = orjson.loads(args[0])
            holds = self._space.get(keys[1], bytes) == step["token"].encode()
            named = step.get("epoch", "").encode(), step.get("erasure", "").encode()
            self._held = holds and (script == "hand_over" or versions == named)
        if script in ("commit", "set_aside"):
            self._turn = Hash(self._space.get(keys[2], Hash) or ())

    def after(self, caller: str, script: str, keys: Args, args: Args, reply: Reply) -> None:
        self.step += 1
        tag = _tag(keys[2 if script == "close_work" else 0]) if script.islower() else ""
        if self.is_traced:
            self.note(caller, trace_line(script, tag, args, reply))
        if tag and script not in _READING:
            if script in _FENCED and reply not in _REFUSALS and not self._held:
                self.violated("a lost lease is refused", f"{script} in {tag}")
            seen = self._seen(tag)
            self._noted(script, keys, args, reply, seen)
            if not self._space.exists(seen.turn):
                self.records.taken.pop(tag, None)
            self._check_conversation(script, args, reply, seen)
            self._check_wake_ups([seen])
        elif script in _REMOVES_WAKE_UPS and reply:
            self._check_wake_ups(self.records.conversations.values())

    def _seen(self, tag: str) -> SeenConversation:
        conversations = self.records.conversations
        if tag not in conversations:
            conversations[tag] = SeenConversation(tag, self._keys.scope(Scope(tag)))
        return conversations[tag]

    def delivered(self, tag: str) -> None:
        """Check the wake-ups again: Telegram has delivered all of a conversation's updates."""
        if tag in self.records.conversations:
            self._check_wake_ups([self.records.conversations[tag]])

    def _noted(
        self, script: str, keys: Args, args: Args, reply: Reply, seen: SeenConversation
    ) -> None:
        if script in _MARKING and reply == b"ok":
            step = orjson.loads(args[0])
            self.records.marked[step["token"]] = self.step
            turn = self._space.get(keys[2], Hash) or Hash()
            if script != "sending":
                version = (step["epoch"], step["erasure"])
                written = (seen.tag, turn.get(b"id", b"").decode(), version)
                self.records.written.setdefault(written, self.step)
            if script == "set_aside":
                self._check_given_up(args[1], seen)
        elif script == "edit_entry" and reply == b"edited":
            self._edited(args, seen)
        elif script == "stop" and reply in (b"stopped", b"waits"):
            self._stopped(seen)
        elif script == "intake" and _outcome(reply) == "dropped":
            self._check_dropped(args[1], seen.tag)
        elif script in ("acquire", "commit") and isinstance(reply, list):
            begun = reply if script == "acquire" else reply[-1]
            if isinstance(begun, list) and _outcome(begun[0]) == "turn":
                self._check_begun(begun, seen)

    def _check_dropped(self, member: bytes, tag: str) -> None:
        """Check that only updates covered by an erasure are dropped."""
        update_id, sender = map(int, member.split(b"|")[:2])
        covered = max(self.records.cleared.get(tag, 0), self.world.forgetting(sender))
        if update_id > covered:
            self.violated("only what was erased is dropped", f"w{update_id} in {tag}")
        self.records.dropped.add(update_id)

    def _check_conversation(
        self, script: str, args: Args, reply: Reply, seen: SeenConversation
    ) -> None:
        waiting = self._waiting(seen)
        for update_id in waiting - seen.waiting:
            self._accepted(update_id, script, seen)
        if script == "clear" and isinstance(reply, list) and reply[0] == b"done":
            request = orjson.loads(args[0])
            self._cleared(request["nonce"], int(request["last_update"]), reply[1], seen)
        if script == "wipe":
            self.records.stopped -= waiting  # what stays begins again
        for update_id in sorted(seen.waiting - waiting):
            self._closed(update_id, script, seen)
        if script in _ERASING_ALL:
            person = orjson.loads(args[0])["person"] if script == "erase_person" else ""
            self._questions_erased(waiting, person)
        seen.waiting = waiting
        self._check_log(script, args, seen)

    def _accepted(self, update_id: int, script: str, seen: SeenConversation) -> None:
        known = self.records.updates.get(update_id)
        if known and script == "take_letter" and known.closing and known.closing.is_notice:
            self._begins_again(update_id, seen)
        elif known:
            self.violated("an update is accepted once", f"w{update_id} again by {script}")
        box = self._space.get(seen.mailbox, SortedSet) or SortedSet()
        member = next(member for member, score in box.items() if score == update_id)
        entry, is_task = Entry.of_member(member), update_id < 0
        sender, now_ms = entry.sender_id, self._space.now_ms()
        # A dead letter may have got other words meanwhile.
        words = markers.mentioned(entry.body.decode()) if is_task else words_of(entry)
        asked_in = max(words) if is_task else update_id
        if asked_in <= self.records.forgotten.get(sender, 0):
            where = f"w{asked_in} of {sender} in {seen.tag}"
            self.violated("forgotten messages are not accepted", where)
        if asked_in <= self.records.cleared.get(seen.tag, 0):
            self.violated("nothing from before a clear is accepted", f"w{asked_in} in {seen.tag}")
        sent_at = now_ms // 1000 if is_task else self.world.sent_at(update_id)
        is_text = not is_task and self.world.is_text(update_id)
        self.records.updates[update_id] = AcceptedUpdate(
            update_id,
            seen.tag,
            sender,
            sent_at,
            is_text,
            known.arrived_ms if known else now_ms,
            not is_task and self.world.may_be_silent(update_id),
            words,
        )
        self.records.counts["tasks" if is_task else "accepted"] += 1

    def _questions_erased(self, waiting: Iterable[int], person: str) -> None:
        """Note what an erasure of all words, or of one person's, has taken from who asks again.

        The question was in the waiting entry only. It must not come back, so nothing may be said.
        """
        for update in map(self.records.updates.__getitem__, waiting):
            asks_again = update.words and update.words <= self.records.asked_again
            if asks_again and person in ("", str(update.sender)):
                update.may_be_silent = True

    def _begins_again(self, update_id: int, seen: SeenConversation) -> None:
        """Note that a turn that was set aside is tried again, under the same id."""
        turn, written = (seen.tag, str(update_id)), self.records.written
        self.records.stopped.discard(update_id)  # a person wants an answer after all
        self.records.written = {each: at for each, at in written.items() if each[:2] != turn}
        for reply in self.records.replies.values():
            reply.was_set_aside = reply.was_set_aside or (reply.tag, reply.turn) == turn

    def _closed(self, update_id: int, script: str, seen: SeenConversation) -> None:
        update, how = self.records.updates[update_id], _CLOSING.get(script)
        if how is None:
            self.violated(
                "an update waits until its turn is closed", f"w{update_id} was removed by {script}"
            )
        if update.closed_by:
            self.violated("an update is closed once", f"w{update_id} by {script}")
        if script == "commit" and not self._held:
            self.violated("a lost lease is refused", f"commit of w{update_id}")
        if script == "commit":
            update.closing = self._closing(seen)
            self._check_stop(update)
            if update.may_be_silent:
                self._check_edit(update, self._logged(seen))
        update.closed_by = how
        if how == "erased":
            self._erase(update)
        self.records.counts[f"closed by {update.closed_by}"] += 1

    def _cleared(self, nonce: str, confirmed: int, receipt: Reply, seen: SeenConversation) -> None:
        """Note that nothing written up to the confirmation may be seen again."""
        tag, waiting = seen.tag, self._waiting(seen)
        first = self.records.receipts.setdefault(nonce, receipt)
        if first is not receipt:
            if first != receipt or waiting != seen.waiting or self._logged(seen) != seen.logged:
                self.violated("a replayed confirmation erases nothing", f"in {tag}")
            return
        self.records.counts["clears"] += 1
        self.records.stopped -= waiting  # what stays begins again
        self.records.cleared[tag] = max(confirmed, self.records.cleared.get(tag, 0))
        for update in self.records.updates.values():
            if update.tag == tag and update.update_id not in waiting:
                self._erase(update)
        kept = [each for each in waiting if each <= confirmed]
        if kept or self._logged(seen):
            self.violated("a clear erases what was said before it", f"{kept} stay in {tag}")

    def _erase(self, update: AcceptedUpdate) -> None:
        for mark in update.marks:
            self.records.erased.setdefault(mark, self.step)

    def _check_log(self, script: str, args: Args, seen: SeenConversation) -> None:
        """Check the history and its vectors if one of them has changed."""
        log, vectors = self._space.get(seen.log, Stream), self._space.get(seen.vectors, Stream)
        current = (log, log and log.changes, vectors, vectors and vectors.changes)
        if current == seen.checked:
            return
        seen.checked = current
        entries = log.entries if log else {}
        for entry, fields in entries.items():
            if entry > seen.last:
                self._check_written(script, entry_text(fields))
        logged = self._logged(seen)
        lost = seen.logged - logged
        if lost and script not in _ERASING:
            self.violated("history loses nothing", f"{sorted(lost)} by {script}")
        if script == "revise":
            lost -= self._revised(args, seen, lost, logged - seen.logged)
        for update_id in lost:
            self.records.erased.setdefault(update_id, self.step)
        seen.last = max(seen.last, *entries, MIN_ID)
        seen.logged = logged
        if vectors and not vectors.entries.keys() <= entries.keys():
            self.violated("no vector of an erased message", f"after {script}")

    def _check_written(self, script: str, text: str) -> None:
        if markers.mentioned(text) & self.records.erased.keys():
            self.violated("nothing erased is written", f"{script} wrote {text!r}")

    def _check_wake_ups(self, conversations: Iterable[SeenConversation]) -> None:
        """Check that leased or waiting conversations have a wake-up or a due time.

        They need neither while Telegram still has an update to deliver, nor for a task that has
        just begun: a sweep finds that one.
        """
        woken: set[bytes] | None = None
        for seen in conversations:
            is_task_alone = seen.waiting and max(seen.waiting) < 0
            if is_task_alone or not (seen.waiting or self._space.exists(seen.lease)):
                continue
            if woken is None:
                woken = self._woken()
            if seen.tag.encode() not in woken and not self.world.has_undelivered(seen.tag):
                self.violated("waiting updates have a wake-up", f"none for {seen.tag}")

    def _woken(self) -> set[bytes]:
        """Return the conversations that are due or have an unread or pending wake-up."""
        woken = set(self._space.get(self._due, SortedSet) or ())
        wake_ups = self._space.get(self._ready_queue, Stream)
        if wake_ups:
            group = wake_ups.groups.get(GROUP.encode(), _UNREAD)
            for entry, fields in wake_ups.entries.items():
                if entry > group.last or entry in group.pending:
                    woken.add(fields[1])
        return woken

    def history(self, tag: str) -> History:
        return history_of(self._space.get(self.records.conversations[tag].log, Stream) or Stream())

    def unlearned(self, tag: str) -> list[int]:
        """Return the sequences of messages that have no vector."""
        seen = self.records.conversations[tag]
        log, vectors = self._space.get(seen.log, Stream), self._space.get(seen.vectors, Stream)
        learned = vectors.entries if vectors else {}
        return [entry[0] for entry in log.entries if entry not in learned] if log else []

    def _logged(self, seen: SeenConversation) -> frozenset[int]:
        """Return the updates whose text is in the history."""
        log = self._space.get(seen.log, Stream)
        said = written_in_log(log) if log else []
        self._check_once(said, seen.tag)
        return frozenset(said)


@cache
def _tag(key: bytes) -> str:
    """Return the conversation that a metadata key belongs to, "" for other keys."""
    if b"{c:" not in key or not key.endswith(b":meta"):
        return ""
    return key.partition(b"{")[2].partition(b"}")[0].decode()


def _outcome(head: Reply) -> str:
    """Return the outcome in the JSON object of an answer."""
    assert isinstance(head, bytes)
    return str(orjson.loads(head)["outcome"])
