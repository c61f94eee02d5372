"""Checks DESIGN's promises of what is answered, sent and forgotten, beside those of the store."""

from bot.telegram.updates import IncomingMessage
from memory.queue.open_turn import OpenTurn
from tests.lab.simulator import telling
from tests.lab.simulator.audit_store import StoreAuditor
from tests.lab.simulator.ledger import MadeReply, SentPart


class Auditor(StoreAuditor):
    """Watches one schedule."""

    def asked(self, turn: OpenTurn, *, is_answer: bool) -> int:
        """Note that a reply is made; return its number."""
        lease, number = turn.lease, len(self.ledger.replies) + 1
        updates = tuple(entry.update_id for entry in turn.entries)
        tag = lease.conversation.tag
        made = MadeReply(number, turn.id, tag, lease.version, updates, is_answer)
        written = self.ledger.written.get((tag, turn.id, lease.version), self.step)
        if is_answer and written < self.ledger.begun[lease.token, turn.id]:
            self.violated("the model is not asked after the outbox", f"turn {turn.id} in {tag}")
        self.ledger.replies[number] = made
        return number

    def sending(self, text: str, token: str) -> None:
        """Check a send that begins."""
        erased = [self.ledger.erased.get(each, self.step) for each in telling.mentioned(text)]
        if any(at < self.ledger.marked.get(token, 0) for at in erased):
            self.violated("no send begins after a clear", repr(text))

    def sent(
        self, message_id: int, text: str, token: str, sender: str, *, is_answered: bool
    ) -> SentPart | None:
        """Note a message that now stands in a chat, and whether its sender learns of it."""
        self.note(sender, f"message {message_id} stands: {text[:60]!r}")
        name = telling.part_name(text)
        if name is None:
            return None
        part = SentPart(
            message_id,
            name.reply,
            name.number,
            name.of,
            token,
            sender,
            self.step,
            telling.mentioned(text),
            is_answered,
        )
        self._check_once(part)
        self.ledger.parts.append(part)
        return part

    def _check_once(self, part: SentPart) -> None:
        """See that nothing stands in the chat twice but the part in doubt."""
        what = f"part {part.part} of reply {part.reply}, message {part.message_id}"
        before = [p for p in self.ledger.parts if p.reply == part.reply]
        if any(p.part == part.part and p.token == part.token for p in before):
            self.violated("one holder sends a part once", what)
        made = self.ledger.replies[part.reply]
        begun = self.ledger.begun[part.token, made.turn]
        if part.is_answered and any(p.part > part.part and p.sent_at < begun for p in before):
            self.violated("only the part in doubt is repeated", what)
        for other in self.ledger.parts:
            reply = self.ledger.replies[other.reply]
            same = (reply.tag, reply.turn, reply.version) == (made.tag, made.turn, made.version)
            if same and reply.number != made.number and reply.is_answer == made.is_answer:
                self.violated("a turn has one reply", what)

    def forgotten(self, person: int, confirmed: int, confirmed_at: float) -> None:
        """Note that a forgetting has told its receipt, and check that it was true."""
        self.ledger.counts["forgettings"] += 1
        self.ledger.forgotten[person] = max(confirmed, self.ledger.forgotten.get(person, 0))
        for mail in self.ledger.mail.values():
            if mail.sender != person or mail.update_id > confirmed or mail.sent_at > confirmed_at:
                continue
            self.ledger.erased.setdefault(mail.update_id, self.step)
            seen = self.ledger.seen[mail.tag]
            if mail.update_id in seen.waiting or mail.update_id in seen.logged:
                where = "mailbox" if mail.update_id in seen.waiting else "history"
                self.violated("what is forgotten is gone", f"w{mail.update_id} in the {where}")

    def is_forgotten(self, inbound: IncomingMessage) -> bool:
        """Tell whether a message was sent before its sender confirmed to be forgotten."""
        return inbound.update_id <= self.world.forgetting(inbound.sender.id)
