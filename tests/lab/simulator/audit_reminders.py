"""Checks the promises about reminders: each is one message, if it was not erased before."""

import orjson

from tests.lab.simulator import markers
from tests.lab.simulator.audit_store import StoreAuditor
from tests.lab.simulator.process import Process
from tests.lab.simulator.store.keyspace import Args, Hash, Reply

_MAX_SENDS = 2


class ReminderAuditor(StoreAuditor):
    """Watches the reminders of one schedule; a reminder is known by its text."""

    def before(self, script: str, keys: Args, args: Args) -> None:
        """Check that nobody takes a reminder which another worker still has."""
        super().before(script, keys, args)
        if script != "take_reminder":
            return
        request = orjson.loads(args[0])
        stored = (self._space.get(keys[0], Hash) or Hash()).get(request["id"].encode())
        self._holder, self._held_until = b"", 0
        if stored is not None:
            *_, held_until, holder, _ = stored.split(b"|", 6)
            self._holder, self._held_until = holder, int(held_until)

    def after(self, process: Process, script: str, keys: Args, args: Args, reply: Reply) -> None:
        """Note which reminders are set, and which may be sent from now on."""
        super().after(process, script, keys, args, reply)
        records = self.records.reminders
        if script == "commit" and isinstance(reply, list) and len(reply) > 1:
            for _, _, _, body in orjson.loads(args[0]).get("reminders", ((), ()))[0]:
                records.set_.add(orjson.loads(body)[0])
        if script != "take_reminder" or not isinstance(reply, list) or reply[0] != b"taken":
            return
        request = orjson.loads(args[0])
        token = request["token"].encode()
        if self._holder not in (b"", token) and self._held_until > self._space.now_ms():
            self.violated("one worker has a reminder", request["id"])
        assert isinstance(reply[1], bytes)
        text = orjson.loads(reply[1].split(b"|", 6)[6])[0]
        if request.get("sends"):
            records.marked[text] = self.step
            records.tries.setdefault(text, set()).add(request["token"])

    def reminder_sending(self, text: str) -> None:
        """Check that the message of a reminder may be sent."""
        asked = _asked(text)
        erased = [self.records.erased.get(each, self.step) for each in markers.mentioned(text)]
        if any(at < self.records.reminders.marked[asked] for at in erased):
            self.violated("no send begins after a clear", repr(text))

    def reminder_sent(self, text: str, token: str) -> None:
        """Check that no delivery that ended is repeated, and that none has two messages."""
        sent = self.records.reminders.sent.setdefault(_asked(text), [])
        if markers.mentioned(text) & self.records.asked_again:
            return  # each answer may set a reminder
        is_repeated = any(each in self.records.reminders.ended for each in sent)
        if token in sent or is_repeated or len(sent) >= _MAX_SENDS:
            self.violated("a reminder is sent once", repr(text))
        sent.append(token)
        self.records.counts["reminders sent"] += 1

    def reminder_troubled(self, text: str) -> None:
        """Note that Telegram did not answer or refused, so that there may be no message."""
        self.records.reminders.troubled.add(_asked(text))

    def check_reminders(self) -> None:
        """Check that each reminder that was set is in the chat, unless it was erased."""
        records = self.records.reminders
        for text in records.set_ - records.sent.keys() - records.troubled:
            gone = self.records.erased.keys() | self.records.asked_again
            is_erased = markers.mentioned(text) & gone
            if not is_erased and len(records.tries.get(text, ())) < _MAX_SENDS:
                self.violated("every reminder is sent", repr(text))


def _asked(text: str) -> str:
    """Return what a reminder was asked to say, from its message."""
    return text.removeprefix("⏰ ")
