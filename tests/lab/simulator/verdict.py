"""What must be true when nothing is left to be done."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from bot.telegram.updates import IncomingMessage
from tests.lab.simulator.audit import Auditor
from tests.lab.simulator.ledger import Closing, MadeReply, Mail, SentPart

_MAX_FAILURES = 3
"""After more of them even the notice of a turn that is given up is not sent."""


def final_verdict(
    auditor: Auditor, written: Sequence[IncomingMessage], dead: AbstractSet[str]
) -> None:
    """Check that everything was closed, answered whole, remembered once, learned; and count it."""
    ledger = auditor.ledger
    for inbound in written:
        mail = ledger.mail.get(inbound.update_id)
        if mail is None:
            if inbound.update_id not in ledger.dropped and not auditor.is_forgotten(inbound):
                auditor.violated("nothing is lost", f"w{inbound.update_id} was never taken in")
        elif not mail.closed_by:
            auditor.violated("every update is closed", f"w{mail.update_id}")
        elif mail.closed_by == "commit" and mail.update_id not in ledger.erased:
            assert mail.closing is not None
            _check_answered(auditor, mail, mail.closing)
            _check_remembered(auditor, mail, mail.closing)
    for reply in ledger.replies.values():
        _check_doubled(auditor, reply)
    for part in ledger.parts:
        _check_late(auditor, part, dead)
    for tag in ledger.seen:
        if unlearned := auditor.unlearned(tag):
            auditor.violated("what is remembered is learned", f"not {unlearned} of {tag}")
    ledger.counts["parts sent"] = len(ledger.parts)


def _check_answered(auditor: Auditor, mail: Mail, closing: Closing) -> None:
    """See that the reply made for it stands in the chat whole, but for what was not taken."""
    ledger = auditor.ledger
    standing = {p.part for p in ledger.parts if p.reply == closing.reply and not p.is_deleted}
    missing = set(range(1, closing.of + 1)) - standing
    made = ledger.replies.get(closing.reply)
    is_others = made is not None and mail.update_id not in made.updates
    unexcused = [part for part in missing if (closing.reply, part) not in ledger.troubled]
    is_silent = not closing.of and not (closing.is_notice and closing.failures > _MAX_FAILURES)
    if unexcused or is_silent or is_others:
        what = f"w{mail.update_id} in {mail.tag} by reply {closing.reply}, parts {unexcused}"
        auditor.violated("every update is answered", what)
    if closing.is_notice:
        ledger.counts["set aside"] += 1
    else:
        ledger.counts["undeliverable or unknown" if missing else "answered"] += 1


def _check_remembered(auditor: Auditor, mail: Mail, closing: Closing) -> None:
    """See that words are in the history with their answer, unless nobody answered them."""
    history = auditor.history(mail.tag)
    exchange = history.said.get(mail.update_id)
    what = f"w{mail.update_id} in {mail.tag}"
    if (exchange is None) != (closing.is_notice or not mail.is_text):
        auditor.violated("what was answered is remembered", what)
    if exchange is None:
        return
    answers, said = history.answers.get(exchange, []), [closing.said] if closing.said else []
    is_refused = closing.reply in auditor.ledger.undeliverable
    if answers != said and (answers or not is_refused):
        auditor.violated("an answer is remembered once", f"{answers} to {what}")


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
    """See that what arrived after an erasure was taken back, if its sender could know of it."""
    erased = [auditor.ledger.erased[e] for e in part.mentioned if e in auditor.ledger.erased]
    if not erased or min(erased) > part.sent_at:
        return
    auditor.ledger.counts["late parts"] += 1
    could_know = part.sender not in dead and part.token not in auditor.ledger.unanswered
    if not part.is_deleted and part.is_answered and could_know:
        auditor.violated("a late part is taken back", f"message {part.message_id} of {part.sender}")
