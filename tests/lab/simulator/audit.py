"""Checks the promises about what is answered, sent, reminded of and forgotten."""

import orjson

from bot.telegram.updates import IncomingMessage
from memory.queue.open_turn import OpenTurn
from memory.work.item import due_task
from tests.lab.simulator import markers
from tests.lab.simulator.audit_store import StoreAuditor
from tests.lab.simulator.records import MadeReply, SentPart
from tests.lab.simulator.store.keyspace import Args, Hash, Reply

_MAX_SENDS = 3


class Auditor(StoreAuditor):
    """Watches one schedule: its store, its turns, and what reaches Telegram."""

    def asked(self, turn: OpenTurn, *, is_answer: bool) -> int:
        """Note that a turn makes a reply; return the number of the reply."""
        lease, number = turn.lease, len(self.records.replies) + 1
        updates = tuple(entry.update_id for entry in turn.entries)
        answered = frozenset().union(*(self.records.updates[each].asks for each in updates))
        tag, version = lease.conversation.tag, (lease.epoch, lease.erasure)
        made = MadeReply(number, turn.id, tag, version, updates, answered, is_answer)
        written = self.records.written.get((tag, turn.id, version), self.step)
        if is_answer and written < self.records.begun[lease.token, turn.id]:
            self.violated("the model is not asked after the outbox", f"turn {turn.id} in {tag}")
        self.records.replies[number] = made
        return number

    def sending(self, text: str, token: str) -> None:
        """Check that a send may begin."""
        name = markers.part_name(text)
        answered = self.records.replies[name.reply].answered if name else ()
        said = (*markers.mentioned(text), *answered)
        erased = [self.records.erased.get(each, self.step) for each in said]
        if any(at < self.records.marked.get(token, 0) for at in erased):
            self.violated("no send begins after a clear", repr(text))

    def sent(
        self, message_id: int, text: str, token: str, sender: str, *, is_answered: bool
    ) -> SentPart | None:
        """Note a message that has appeared in a chat, and whether its sender learns of it."""
        self.note(sender, f"message {message_id} appears: {text[:60]!r}")
        name = markers.part_name(text)
        if name is None:
            return None
        shows, here = (name.reply, name.number, name.of), (token, sender, self.step)
        part = SentPart(message_id, *shows, *here, markers.mentioned(text), is_answered)
        self._check_sent_once(part)
        self.records.parts.append(part)
        return part

    def edited(self, message_id: int, text: str, token: str, sender: str) -> SentPart | None:
        """Note that a message in a chat shows another text."""
        name = markers.part_name(text)
        if name is None:
            return None
        self.note(sender, f"message {message_id} becomes: {text[:60]!r}")
        shown = next((p for p in self.records.parts if p.message_id == message_id), None)
        if shown and (shown.reply, shown.part) == (name.reply, name.number):
            return shown
        shows, here = (name.reply, name.number, name.of), (token, sender, self.step)
        part = SentPart(message_id, *shows, *here, markers.mentioned(text), is_answered=True)
        self.records.parts = [p for p in self.records.parts if p is not shown]
        self.records.parts.append(part)
        return part

    def _check_sent_once(self, part: SentPart) -> None:
        """Check that only the part in doubt is in the chat twice."""
        what = f"part {part.part} of reply {part.reply}, message {part.message_id}"
        before = [p for p in self.records.parts if p.reply == part.reply]
        if any(p.part == part.part and p.token == part.token for p in before):
            self.violated("one holder sends a part once", what)
        made = self.records.replies[part.reply]
        begun = self.records.begun[part.token, made.turn]
        if part.is_answered and any(p.part > part.part and p.sent_at < begun for p in before):
            self.violated("only the part in doubt is repeated", what)
        for other in self.records.parts:
            reply = self.records.replies[other.reply]
            same = (reply.tag, reply.turn, reply.version) == (made.tag, made.turn, made.version)
            same = same and reply.was_set_aside == made.was_set_aside
            if same and reply.number != made.number and reply.is_answer == made.is_answer:
                self.violated("a turn has one reply", what)

    def forgotten(self, person: int, confirmed: int, confirmed_at: float) -> None:
        """Note that a person got the receipt of a forgetting, and check the receipt."""
        self.records.counts["forgettings"] += 1
        self.records.forgotten[person] = max(confirmed, self.records.forgotten.get(person, 0))
        for update in self.records.updates.values():
            is_newer = update.update_id > confirmed or update.sent_at > confirmed_at
            if update.sender != person or is_newer:
                continue
            self._erase(update)
            seen = self.records.conversations[update.tag]
            if update.update_id in seen.waiting or update.words & seen.logged:
                where = "mailbox" if update.update_id in seen.waiting else "history"
                self.violated("what is forgotten is gone", f"w{update.update_id} in the {where}")

    def is_forgotten(self, inbound: IncomingMessage) -> bool:
        """Tell whether a message is older than its sender's confirmed `/forget`."""
        return inbound.update_id <= self.world.forgetting(inbound.sender.id)

    def before(self, script: str, keys: Args, args: Args) -> None:
        """Check that nobody takes a reminder which another worker still has."""
        super().before(script, keys, args)
        if script != "take_work":
            return
        request = orjson.loads(args[0])
        stored = (self._space.get(keys[0], Hash) or Hash()).get(request["id"].encode())
        self._holder, self._held_until = "", 0
        if stored is not None:
            *_, held_until, holder, _ = stored.split(b"|", 6)
            self._holder, self._held_until = holder.decode(), int(held_until)

    def after(self, caller: str, script: str, keys: Args, args: Args, reply: Reply) -> None:
        """Note which reminders are set, and which may be sent from now on."""
        super().after(caller, script, keys, args, reply)
        records = self.records.reminders
        if script == "commit" and isinstance(reply, list) and len(reply) > 1:
            for id_, _, _, body in orjson.loads(args[0]).get("work", ((), ()))[0]:
                records.asked[id_] = orjson.loads(body)[0]
        if script != "take_work" or not isinstance(reply, list) or reply[0] != b"taken":
            return
        request = orjson.loads(args[0])
        token = request["token"]
        if self._holder not in ("", token) and self._held_until > self._space.now_ms():
            self.violated("one worker has a reminder", request["id"])
        records.delivered[token] = request["id"]
        if request.get("sends"):
            records.marked[token] = self.step

    def reminder_sending(self, text: str, token: str) -> None:
        """Check that the message of a reminder may be sent."""
        marked = self.records.reminders.marked[token]
        erased = [self.records.erased.get(each, self.step) for each in markers.mentioned(text)]
        if any(at < marked for at in erased):
            self.violated("no send begins after a clear", repr(text))

    def reminder_sent(self, text: str, token: str) -> None:
        """Check that a delivery has one message, and is not repeated when it has ended.

        A worker that was stopped for longer than its lease may still send what it had begun. If
        Telegram did not answer, it is repeated.
        """
        records = self.records.reminders
        id_ = records.delivered[token]
        sent = records.sent.setdefault(id_, [])
        ended = [records.ended[each] for each in sent if each in records.ended]
        is_repeated = any(at < records.marked[token] for at in ended)
        is_repeated = is_repeated and id_ not in records.troubled
        if token in sent or is_repeated or len(sent) >= _MAX_SENDS:
            self.violated("a reminder is sent once", repr(text))
        sent.append(token)
        self.records.counts["reminders sent"] += 1

    def reminder_troubled(self, token: str) -> None:
        """Note that Telegram did not answer or refused, so that there may be no message."""
        self.records.reminders.troubled.add(self.records.reminders.delivered[token])

    def check_reminders(self) -> None:
        """Check that each reminder is in the chat and each task had a turn, unless it was erased.

        A question that is answered again asks again: its new reminder replaces an open one.
        """
        records = self.records.reminders
        tries = [records.delivered[token] for token in records.marked]
        begun = [due_task(each, 0)[0] for each in self.records.updates if each < 0]
        done = {records.asked[id_] for id_ in (*records.sent, *records.troubled, *begun)}
        gone = self.records.erased.keys() | self.records.asked_again
        for tag in self.records.conversations:
            if kept := self.history(tag).tasks & self.records.erased.keys():
                self.violated("what is forgotten is gone", f"the tasks of {sorted(kept)} in {tag}")
        for id_, text in records.asked.items():
            is_erased = markers.mentioned(text) & gone
            is_in_doubt = tries.count(id_) >= _MAX_SENDS
            if text not in done and not is_erased and not is_in_doubt:
                self.violated("every reminder is sent", repr(text))
