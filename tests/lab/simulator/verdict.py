"""What must be true when nothing is left to be done."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet

from bot.telegram.updates import IncomingMessage
from tests.lab.simulator.audit import Auditor
from tests.lab.simulator.audit_turns import MAX_FAILURES
from tests.lab.simulator.records import AcceptedUpdate, Closing, MadeReply, SentPart


def final_verdict(
    auditor: Auditor, written: Sequence[IncomingMessage], dead: AbstractSet[str]
) -> None:
    """Check that each update was closed, answered, remembered once and learned; count them."""
    records = auditor.records
    for inbound in written:
        update = records.updates.get(inbound.update_id)
        if update is None:
            known = inbound.update_id in records.dropped or auditor.is_forgotten(inbound)
            if not known and inbound.command != "stop" and not _is_edited(auditor, inbound):
                auditor.violated("nothing is lost", f"w{inbound.update_id} was never accepted")
        elif not update.closed_by:
            auditor.violated("every update is closed", f"w{update.update_id}")
        elif update.closed_by == "commit" and not _is_gone(update, records.erased):
            assert update.closing is not None
            _check_answered(auditor, update, update.closing)
            _check_remembered(auditor, update, update.closing)
            _check_replaced(auditor, update, update.closing)
    _check_tasks(auditor)
    for reply in records.replies.values():
        _check_doubled(auditor, reply)
    for part in records.parts:
        _check_late(auditor, part, dead)
    for tag in records.conversations:
        if unlearned := auditor.unlearned(tag):
            auditor.violated("what is remembered is learned", f"not {unlearned} of {tag}")
    auditor.check_reminders()
    records.counts["parts sent"] = len(records.parts)


def _check_tasks(auditor: Auditor) -> None:
    """Check that each turn of a task was answered, unless what asked for the task was erased."""
    for update in auditor.records.updates.values():
        is_gone = update.is_answered_again or update.words & auditor.records.erased.keys()
        if update.update_id < 0 and update.closing and not is_gone:
            _check_answered(auditor, update, update.closing)


def _is_edited(auditor: Auditor, inbound: IncomingMessage) -> bool:
    """Tell whether a message is an edit that was made, or that came after a newer one."""
    records, about = auditor.records, auditor.world.message_of
    newer = [e for e in records.edits | records.updates.keys() if e >= inbound.update_id]
    return inbound.kind == "edit" and inbound.message_id in map(about, newer)


def _is_gone(update: AcceptedUpdate, erased: Collection[int]) -> bool:
    """Tell whether nothing of an update is left to check."""
    if update.is_answered_again:
        return True
    return all(each in erased for each in update.words or {update.update_id})


def _check_answered(auditor: Auditor, update: AcceptedUpdate, closing: Closing) -> None:
    """Check that every part of the reply is in the chat, unless Telegram did not take it."""
    records = auditor.records
    shown = {p.part for p in records.parts if p.reply == closing.reply and not p.is_deleted}
    missing = set(range(1, closing.of + 1)) - shown
    made = records.replies.get(closing.reply)
    is_for_others = made is not None and update.update_id not in made.updates
    unexcused = [part for part in missing if (closing.reply, part) not in records.troubled]
    may_be_silent = update.may_be_silent or closing.failures > MAX_FAILURES
    is_silent = not closing.of and not (closing.is_notice and may_be_silent)
    if unexcused or is_silent or is_for_others:
        what = f"w{update.update_id} in {update.tag} by reply {closing.reply}, parts {unexcused}"
        auditor.violated("every update is answered", what)
    if closing.is_notice:
        records.counts["set aside"] += 1
    else:
        records.counts["undeliverable or unknown" if missing else "answered"] += 1


def _check_remembered(auditor: Auditor, update: AcceptedUpdate, closing: Closing) -> None:
    """Check that an answered message is in the history with its answer."""
    history = auditor.history(update.tag)
    words = [word for word in update.words if word not in auditor.records.erased]
    exchanges = {history.said.get(word) for word in words}
    what = f"w{update.update_id} in {update.tag}"
    if exchanges and (len(exchanges) > 1 or (None in exchanges) != closing.is_notice):
        auditor.violated("what was answered is remembered", what)
    exchange = next(iter(exchanges), None)
    if exchange is None:
        return
    answers, said = history.answers.get(exchange, []), [closing.said] if closing.said else []
    is_refused = closing.reply in auditor.records.undeliverable
    if answers != said and (answers or not is_refused):
        auditor.violated("an answer is remembered once", f"{answers} to {what}")


def _check_replaced(auditor: Auditor, update: AcceptedUpdate, closing: Closing) -> None:
    """Check that the messages of a former reply show the new one or are deleted."""
    if closing.is_notice or closing.reply in auditor.records.undeliverable:
        return
    shown = {p.message_id for p in auditor.records.parts if not p.is_deleted}
    new = {p.message_id for p in auditor.records.parts if p.reply == closing.reply}
    if left := [each for each in update.replaces if each in shown - new]:
        auditor.violated("a replaced reply leaves the chat", f"{left} of w{update.update_id}")


def _check_doubled(auditor: Auditor, reply: MadeReply) -> None:
    """Check that each new lease repeats at most the one part in doubt."""
    parts = [p for p in auditor.records.parts if p.reply == reply.number]
    shown = [p.part for p in parts if not p.is_deleted]
    doubled = len(shown) - len(set(shown))
    holders = {p.token for p in parts}
    if doubled > max(0, len(holders) - 1):
        auditor.violated("only the part in doubt is repeated", f"reply {reply.number}")
    auditor.records.counts["parts doubled in doubt"] += doubled


def _check_late(auditor: Auditor, part: SentPart, dead: AbstractSet[str]) -> None:
    """Check that a part that arrived after an erasure was deleted, if its sender could know."""
    erased = [auditor.records.erased[e] for e in part.mentioned if e in auditor.records.erased]
    if not erased or min(erased) > part.sent_at:
        return
    auditor.records.counts["late parts"] += 1
    could_know = part.sender not in dead and part.token not in auditor.records.unanswered
    if not part.is_deleted and part.is_answered and could_know:
        auditor.violated("a late part is deleted", f"message {part.message_id} of {part.sender}")
