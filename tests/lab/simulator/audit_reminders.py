"""Checks the promises about reminders: each is one message, if it was not erased before."""

import orjson

from memory.work.item import due_task
from tests.lab.simulator import markers
from tests.lab.simulator.audit_store import StoreAuditor
from tests.lab.simulator.process import Process
from tests.lab.simulator.store.keyspace import Args, Hash, Reply

_MAX_SENDS = 3


class ReminderAuditor(StoreAuditor):
    """Watches the reminders of one schedule."""

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

    def after(self, process: Process, script: str, keys: Args, args: Args, reply: Reply) -> None:
        """Note which reminders are set, and which may be sent from now on."""
        super().after(process, script, keys, args, reply)
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
