"""Checks DESIGN's promises at every atomic step of the store; what is sent is checked elsewhere."""

from collections.abc import Iterable
from functools import cache

import orjson

from memory.queue.ready_queue import GROUP
from memory.store.keys import Keys
from tests.lab.simulator import telling
from tests.lab.simulator.audit_turns import TurnAuditor
from tests.lab.simulator.history import History, history_of, said_in, text_of
from tests.lab.simulator.ledger import Mail, Seen
from tests.lab.simulator.process import Process
from tests.lab.simulator.store.keyspace import Args, Hash, Keyspace, Reply, SortedSet
from tests.lab.simulator.store.stream import LEAST, Group, Stream
from tests.lab.simulator.witness import Note, told

_FENCED = frozenset({"outbox", "sending", "park", "renew", "set_aside", "failed", "hand_over"})
_MARKING = frozenset({"outbox", "sending", "set_aside"})
_ERASING = frozenset({"clear", "wipe", "erase_person", "revise"})
_CLOSING = {"commit": "commit"} | dict.fromkeys(_ERASING, "erased")
_REFUSALS = (b"refused", b"superseded")
_READING = frozenset({"read_scope"})
_UNRINGING = frozenset({"ack", "remove_consumers", "take_due", "DEL", "XACK", "XDEL", "ZREM"})
"""What may take a bell or a due time away, beside what changes a conversation."""

_UNREAD = Group(LEAST)


class StoreAuditor(TurnAuditor):
    """Watches the store of one schedule."""

    def __init__(self, space: Keyspace, keys: Keys, note: Note | None) -> None:
        super().__init__(space, note)
        self._ready_queue = keys.ready_queue.encode()
        self._due = keys.due.encode()
        self._held = False

    def not_simulated(self, what: str) -> None:
        """End a schedule that asks for more than is simulated."""
        self.violated("everything is simulated", what)

    def before(self, script: str, keys: Args, args: Args) -> None:
        """See whether a fenced step comes from whoever holds the lease, under its versions."""
        if script in _FENCED or script == "commit":
            fields = self._space.get(keys[0], Hash) or Hash()
            versions = fields.get(b"epoch", b"0"), fields.get(b"erasure", b"0")
            step = orjson.loads(args[0])
            holds = self._space.get(keys[1], bytes) == step["token"].encode()
            named = step.get("epoch", "").encode(), step.get("erasure", "").encode()
            self._held = holds and (script == "hand_over" or versions == named)
        if script in ("commit", "set_aside"):
            self._turn = Hash(self._space.get(keys[2], Hash) or ())

    def after(self, process: Process, script: str, keys: Args, args: Args, reply: Reply) -> None:
        """Check what a step has changed."""
        self.step += 1
        tag = _tag(keys[0]) if script.islower() else ""
        if self.is_traced:
            self.note(process.name, told(script, tag, args, reply))
        if tag and script not in _READING:
            if script in _FENCED and reply not in _REFUSALS and not self._held:
                self.violated("a lost lease counts no more", f"{script} in {tag}")
            seen = self.ledger.seen.setdefault(tag, Seen(tag, keys))
            self._noted(script, keys, args, reply, seen)
            self._check_conversation(script, args, reply, seen)
            self._check_bells([seen])
        elif script in _UNRINGING and reply:
            self._check_bells(self.ledger.seen.values())

    def told(self, tag: str) -> None:
        """Look again when Telegram has nothing more on its way for a conversation."""
        if tag in self.ledger.seen:
            self._check_bells([self.ledger.seen[tag]])

    def _noted(self, script: str, keys: Args, args: Args, reply: Reply, seen: Seen) -> None:
        if script in _MARKING and reply == b"ok":
            step = orjson.loads(args[0])
            self.ledger.marked[step["token"]] = self.step
            turn = self._space.get(keys[2], Hash) or Hash()
            if script != "sending":
                version = (step["epoch"], step["erasure"])
                written = (seen.tag, turn.get(b"id", b"").decode(), version)
                self.ledger.written.setdefault(written, self.step)
            if script == "set_aside":
                self._check_given_up(args[1], seen)
        elif script == "intake" and _outcome(reply) == "dropped":
            self._check_dropped(orjson.loads(args[0])["update_id"], args[1], seen.tag)
        elif script in ("acquire", "commit") and isinstance(reply, list):
            begun = reply if script == "acquire" else reply[-1]
            if isinstance(begun, list) and _outcome(begun[0]) == "turn":
                self._check_begun(begun, seen)

    def _check_dropped(self, update_id: int, member: bytes, tag: str) -> None:
        """See that only what an erasure covers is refused."""
        covered = max(self.ledger.cleared.get(tag, 0), self.world.forgetting(_sender(member)))
        if update_id > covered:
            self.violated("only what was erased is dropped", f"w{update_id} in {tag}")
        self.ledger.dropped.add(update_id)

    def _check_conversation(self, script: str, args: Args, reply: Reply, seen: Seen) -> None:
        waiting = self._waiting(seen)
        for update_id in waiting - seen.waiting:
            self._taken_in(update_id, script, seen)
        if script == "clear" and isinstance(reply, list) and reply[0] == b"done":
            self._cleared(args[0], int(args[2]), reply[1], seen)
        for update_id in sorted(seen.waiting - waiting):
            self._closed(update_id, script, seen)
        seen.waiting = waiting
        self._check_log(script, seen)

    def _taken_in(self, update_id: int, script: str, seen: Seen) -> None:
        if update_id in self.ledger.mail:
            self.violated("an update is taken in once", f"w{update_id} again by {script}")
        sender = _sender(self._member(seen, update_id))
        if update_id <= self.ledger.forgotten.get(sender, 0):
            where = f"w{update_id} of {sender} in {seen.tag}"
            self.violated("forgotten words are not taken in", where)
        if update_id <= self.ledger.cleared.get(seen.tag, 0):
            self.violated("nothing from before a clear is taken in", f"w{update_id} in {seen.tag}")
        sent_at, is_text = self.world.sent_at(update_id), self.world.is_text(update_id)
        now_ms = self._space.now_ms()
        self.ledger.mail[update_id] = Mail(update_id, seen.tag, sender, sent_at, is_text, now_ms)
        self.ledger.counts["taken in"] += 1

    def _closed(self, update_id: int, script: str, seen: Seen) -> None:
        mail, how = self.ledger.mail[update_id], _CLOSING.get(script)
        if how is None:
            self.violated("mail stays until its turn is closed", f"w{update_id} went by {script}")
        if mail.closed_by:
            self.violated("an update is closed once", f"w{update_id} by {script}")
        if script == "commit" and not self._held:
            self.violated("a lost lease counts no more", f"commit of w{update_id}")
        if script == "commit":
            mail.closing = self._closing(seen)
        mail.closed_by = how
        if how == "erased":
            self.ledger.erased.setdefault(update_id, self.step)
        self.ledger.counts[f"closed by {mail.closed_by}"] += 1

    def _cleared(self, nonce: bytes, confirmed: int, receipt: Reply, seen: Seen) -> None:
        """Everything that was said until the confirmation must not be seen again."""
        tag, waiting = seen.tag, self._waiting(seen)
        first = self.ledger.receipts.setdefault(nonce, receipt)
        if first is not receipt:
            if first != receipt or waiting != seen.waiting or self._logged(seen) != seen.logged:
                self.violated("a replayed confirmation erases nothing", f"in {tag}")
            return
        self.ledger.counts["clears"] += 1
        self.ledger.cleared[tag] = max(confirmed, self.ledger.cleared.get(tag, 0))
        for mail in self.ledger.mail.values():
            if mail.tag == tag and mail.update_id not in waiting:
                self.ledger.erased.setdefault(mail.update_id, self.step)
        kept = [each for each in waiting if each <= confirmed]
        if kept or self._logged(seen):
            self.violated("a clear takes what was said before it", f"{kept} stay in {tag}")

    def _check_log(self, script: str, seen: Seen) -> None:
        """Look at the history and at its vectors where one of them has changed."""
        log, vectors = self._space.get(seen.log, Stream), self._space.get(seen.vectors, Stream)
        looked_at = (log, log and log.changes, vectors, vectors and vectors.changes)
        if looked_at == seen.looked_at:
            return
        seen.looked_at = looked_at
        entries = log.entries if log else {}
        for entry, fields in entries.items():
            if entry > seen.last:
                self._check_written(script, text_of(fields))
        logged = self._logged(seen)
        lost = seen.logged - logged
        if lost and script not in _ERASING:
            self.violated("history loses nothing", f"{sorted(lost)} by {script}")
        for update_id in lost:
            self.ledger.erased.setdefault(update_id, self.step)
        seen.last = max(seen.last, *entries, LEAST)
        seen.logged = logged
        if vectors and not vectors.entries.keys() <= entries.keys():
            self.violated("no vector of an erased message", f"after {script}")

    def _check_written(self, script: str, text: str) -> None:
        if telling.mentioned(text) & self.ledger.erased.keys():
            self.violated("nothing erased is written", f"{script} wrote {text!r}")

    def _check_bells(self, conversations: Iterable[Seen]) -> None:
        """Held or waiting means a bell, a due time, or something that is still to be told."""
        woken: set[bytes] | None = None
        for seen in conversations:
            if not (seen.waiting or self._space.exists(seen.lease)):
                continue
            if woken is None:
                woken = self._rung()
            if seen.tag.encode() not in woken and not self.world.is_coming(seen.tag):
                self.violated("mail has a bell", f"none for {seen.tag}")

    def _rung(self) -> set[bytes]:
        """Return the conversations that are due, and those with an unread or pending bell."""
        woken = set(self._space.get(self._due, SortedSet) or ())
        wake_ups = self._space.get(self._ready_queue, Stream)
        if wake_ups:
            group = wake_ups.groups.get(GROUP.encode(), _UNREAD)
            for entry, fields in wake_ups.entries.items():
                if entry > group.last or entry in group.pending:
                    woken.add(fields[1])
        return woken

    def history(self, tag: str) -> History:
        """Return what a conversation's history holds now."""
        return history_of(self._space.get(self.ledger.seen[tag].log, Stream) or Stream())

    def unlearned(self, tag: str) -> list[int]:
        """Return the sequences of messages that have no vector."""
        seen = self.ledger.seen[tag]
        log, vectors = self._space.get(seen.log, Stream), self._space.get(seen.vectors, Stream)
        learned = vectors.entries if vectors else {}
        return [entry[0] for entry in log.entries if entry not in learned] if log else []

    def _member(self, seen: Seen, update_id: int) -> bytes:
        box = self._space.get(seen.mailbox, SortedSet) or SortedSet()
        return next(member for member, score in box.items() if score == update_id)

    def _logged(self, seen: Seen) -> frozenset[int]:
        """Return the updates whose words stand in the history."""
        log = self._space.get(seen.log, Stream)
        said = said_in(log) if log else []
        if len(said) != len(set(said)):
            self.violated("what was answered is remembered once", f"{sorted(said)} in {seen.tag}")
        return frozenset(said)


@cache
def _tag(key: bytes) -> str:
    """Return the conversation that a key belongs to, "" for other keys."""
    if b"{c:" not in key or not key.endswith(b":meta"):
        return ""
    return key.partition(b"{")[2].partition(b"}")[0].decode()


def _outcome(head: Reply) -> str:
    """Return the outcome that the JSON object of an answer names."""
    assert isinstance(head, bytes)
    return str(orjson.loads(head)["outcome"])


def _sender(member: bytes) -> int:
    return int(member.split(b"|")[1])
