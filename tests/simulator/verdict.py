"""What must be true when nothing is left to be done."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from bot.telegram.inbound import Inbound
from tests.simulator.audit import Auditor
from tests.simulator.ledger import MadeReply, Mail, SentPart


def final_verdict(auditor: Auditor, written: Sequence[Inbound], dead: AbstractSet[str]) -> None:
    """Check that everything was closed, answered whole and remembered once, and count it."""
    ledger = auditor.ledger
    for inbound in written:
        mail = ledger.mail.get(inbound.update_id)
        if mail is None:
            if inbound.update_id not in ledger.dropped and not auditor.is_forgotten(inbound):
                auditor.violated("nothing is lost", f"w{inbound.update_id} was never taken in")
        elif not mail.closed_by:
            auditor.violated("every update is closed", f"w{mail.update_id}")
        elif mail.closed_by == "commit" and mail.update_id not in ledger.erased:
            _check_answered(auditor, mail)
    for reply in ledger.replies.values():
        _check_doubled(auditor, reply)
    for part in ledger.parts:
        _check_late(auditor, part, dead)
    ledger.counts["parts sent"] = len(ledger.parts)


def _check_answered(auditor: Auditor, mail: Mail) -> None:
    """See that a reply stands in the chat whole, and the words stand in the history once."""
    ledger = auditor.ledger
    if mail.update_id in ledger.set_aside:
        ledger.counts["set aside"] += 1
        return
    replies = [r for r in ledger.replies.values() if mail.update_id in r.updates]
    whole = [r for r in replies if _is_whole(auditor, r)]
    if not whole and not any(r.number in ledger.troubled for r in replies):
        auditor.violated("every update is answered", f"w{mail.update_id} in {mail.tag}")
    ledger.counts["answered" if whole else "undeliverable or unknown"] += 1
    is_remembered = mail.update_id in ledger.seen[mail.tag].logged
    if mail.is_text and not is_remembered:
        auditor.violated("what was answered is remembered", f"w{mail.update_id} in {mail.tag}")


def _is_whole(auditor: Auditor, reply: MadeReply) -> bool:
    standing = [p for p in auditor.ledger.parts if p.reply == reply.number and not p.is_deleted]
    return bool(standing) and {p.part for p in standing} == set(range(1, standing[0].of + 1))


def _check_doubled(auditor: Auditor, reply: MadeReply) -> None:
    """See that each change of hands repeats no more than the one part in doubt."""
    parts = [p for p in auditor.ledger.parts if p.reply == reply.number]
    standing = [p.part for p in parts if not p.is_deleted]
    doubled = len(standing) - len(set(standing))
    holders = {p.token for p in parts}
    if doubled > max(0, len(holders) - 1):
        auditor.violated("only the part in doubt is repeated", f"reply {reply.number}")
    auditor.ledger.counts["parts doubled in doubt"] += doubled


def _check_late(auditor: Auditor, part: SentPart, dead: AbstractSet[str]) -> None:
    """See that what arrived after an erasure was taken back, if its sender lived to know of it."""
    erased = [auditor.ledger.erased[e] for e in part.mentioned if e in auditor.ledger.erased]
    if not erased or min(erased) > part.sent_at:
        return
    auditor.ledger.counts["late parts"] += 1
    if not part.is_deleted and part.is_answered and part.sender not in dead:
        auditor.violated("a late part is taken back", f"message {part.message_id} of {part.sender}")
