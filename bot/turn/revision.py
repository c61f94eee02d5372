"""What follows when a person edits a message, uses `/retry`, or presses "ask again".

A question that is answered again is taken out of the history together with its answer and all that
was learned from them. The waiting entry becomes this question, and its turn begins again as that of
any other question. The reply is edited into the former one; after `/retry`, which stands at the
bottom of the chat, it is sent there and the former one is deleted.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from bot.commands.access import asker_of
from bot.commands.sentences import Sentences
from bot.telegram.chat import Chat
from bot.telegram.edits import target_again, with_edit, with_edits
from bot.telegram.updates import RETRY, IncomingMessage, Replaced, Sender, to_bytes
from bot.turn.outbox import Outbox, notice
from bot.turn.permits import QuotaStep
from bot.turn.request import Request
from memory.behaviors.context import may_change
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.scopes.history import ChatHistory
from memory.store.errors import LeaseLost
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_ANSWERED_AGAIN_S = 15 * 60  # an edit of an older question changes the memory, but not the answer


@dataclass(frozen=True, slots=True)
class RevisionStep:
    """Changes what is stored before a question is answered again; it asks no model itself.

    `learn` has a conversation learned in the background.
    """

    memory: Memory
    chat: Chat
    quota: QuotaStep
    sentences: Sentences
    learn: Callable[[Scope], None]

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Return None if the message is to be answered; raise `LeaseLost` if its turn begins again.

        A message that changes only what is remembered gets an outbox that is empty, or says what
        the edit did not change.
        """
        last = request.last
        if not request.uses_memory:  # the history is neither read nor changed
            return _nothing_said(request) if last.kind in ("edit", "again") else None
        if last.replaced:
            return await self._go_on(request, history, last.replaced)
        if last.kind == "edit":
            return await self._edit(request, history)
        refused = await self.quota.share(request)
        if refused or last.kind == "again":
            return refused or await self._ask_again(request, history)
        is_retry = last.kind == "command" and last.command == RETRY
        return await self._retry(request, history) if is_retry else None

    async def _go_on(
        self, request: Request, history: ChatHistory, replaced: Replaced
    ) -> Outbox | None:
        """Return None if the question that left the history is to be answered.

        It may have been erased since. If a quota left an edited question unanswered, say so, now
        that it is stored.
        """
        last, here = request.last, history.conversation
        await self.memory.forgetting.drop_facts(here, replaced.seqs, learns=replaced.learns)
        cuts = await self.memory.forgetting.read_cuts(here, replaced.question)
        if replaced.question and cuts == replaced.cuts:
            return None
        self.learn(here)
        found = await self.memory.forgetting.find_exchange(here, last.message_id, last.sent_at)
        if replaced.question or not found:
            return _nothing_said(request)
        is_newest = _is_answered_again(found[0], last, history)
        refusal = await self.quota.answer(request, history) if is_newest else None
        return refusal or await self._unchanged(request, history, found[0])

    async def _edit(self, request: Request, history: ChatHistory) -> Outbox:
        """Have the newest question answered again, or give an older message its new text.

        If the quota is used up, the newest question also gets only its new text.
        """
        edit, here = request.last, history.conversation
        found = await self.memory.forgetting.find_exchange(here, edit.message_id, edit.sent_at)
        if not found:
            return _nothing_said(request)
        question = found[0]
        edited = with_edit(question, edit, found)
        if question.sender_id != edit.sender.id or edited.text == question.text:
            return _nothing_said(request)
        is_due = _is_answered_again(question, edit, history)
        if is_due and not await self.quota.answer(request, history):
            await self._answer_again(request, history, question)
            # Still here: the question is being erased, so it is only reworded.
        edited = replace(edited, tokens=self.memory.tokens.count(edited.text))
        seqs = tuple(message.seq for message in found)
        since = history.messages[-1].seq - question.seq + 1
        learns = await self.memory.quotas.may_learn_again(here, edit.sender.id, since)
        changed = replace(edit, replaced=Replaced((), (), seqs, learns=learns))
        entry = _change(request, edit.sender.id, changed)
        await self.memory.forgetting.rewrite(here, edited, found, entry, learns=learns)
        raise LeaseLost(here.tag)

    async def _unchanged(self, request: Request, history: ChatHistory, edited: Message) -> Outbox:
        """Say what an edit has not changed: what is still due, and what is not learned again.

        A fact deleted in `/memory` does not come back with the new words. Nobody knows which of the
        words it was learned from, and the new text may have them, too.
        """
        last, keys = request.last, dict[str, None]()
        for each in await self.memory.work.list_open(history.conversation, last.sender.id):
            if each.message_id in edited.message_ids and each.chat_id == last.chat_id:
                keys[f"edited.{each.kind}"] = None
        if edited.seq in history.hidden or (last.replaced and not last.replaced.learns):
            keys["edited.hidden"] = None
        said = self.sentences.say(request.language, *filter(self.sentences.has, keys))
        refused = await self.quota.share(request) if said else None
        return refused or replace(_nothing_said(request), parts=said)

    async def _retry(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Have the newest question answered again, by whoever asked it or an admin."""
        question = history.last_user_message
        if question is None or question.seq in history.hidden:  # a deleted fact would come back
            return None
        if not await may_change(asker_of(request.last, self.chat), [question.sender_id]):
            key = "error.anonymous_admin" if request.last.is_anonymous_admin else "retry.not_yours"
            return notice(request, self.sentences, key)
        if refusal := await self.quota.answer(request, history):
            return refusal
        await self._answer_again(request, history, question)
        return None

    async def _ask_again(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Have a question answered whose answer had failed, once for each button."""
        pressed, here = request.last, history.conversation
        try:
            about = await self.memory.questions.check(here, pressed.text, "again", None)
        except NotConfirmed:
            about = ""
        found = await self.memory.forgetting.find_exchange(here, pressed.replied_to)
        if not about or not found or any(each.role == "assistant" for each in found):
            return _nothing_said(request)
        await history.fill()
        if refusal := await self.quota.answer(request, history):
            return refusal
        await self._answer_again(request, history, found[0])
        return _nothing_said(request)

    async def _answer_again(self, request: Request, history: ChatHistory, about: Message) -> None:
        """Turn the waiting entry into the question, and raise `LeaseLost`: its turn begins again.

        `about` is part of it. It gets the words of an edit. Do nothing if it is being erased.
        """
        here, last, nonce = history.conversation, request.last, ""
        exchange = [each for each in history.messages if each.exchange == about.exchange]
        answers = (each for each in exchange if each.role == "assistant")
        answer_ids = tuple(id_ for each in answers for id_ in each.message_ids)
        if last.kind == "command" and here.chat_id != last.chat_id:
            answer_ids = ()  # the group has moved: there the ids may belong to other messages
        if last.kind == "again":  # the notice with the button takes the place of the answer
            answer_ids, nonce = (last.message_id,), last.text
        said = (each for each in exchange if each.role == "user")
        question = tuple(replace(m, seq=0, exchange=0, is_refused=False) for m in said)
        if last.kind == "edit":
            question = tuple(with_edits(question, last))
        seqs = tuple(message.seq for message in exchange)
        newest, sender = question[-1], last.sender
        cuts = await self.memory.forgetting.read_cuts(here, question)
        if cuts is None:
            return
        asker, name = newest.sender_id, newest.sender_name
        if sender.id != asker:
            sender = Sender(asker, name, language=sender.language, is_person=asker > 0)
        asked = replace(
            last,
            message_id=newest.message_ids[-1],
            sent_at=int(newest.sent_at),
            sender=sender,
            kind="text",
            text="",
            command=RETRY if last.command == RETRY else "",
            reply=last.reply if last.kind == "edit" else target_again(newest, history.messages),
            replied_to=last.replied_to if last.kind == "edit" else newest.replied_to,
            replaced=Replaced(question, answer_ids, seqs, cuts),
        )
        log.info("answered again", kind=last.kind, messages=len(answer_ids))
        entry = _change(request, sender.id, asked)
        await self.memory.forgetting.take_out(here, seqs, entry, nonce)
        raise LeaseLost(here.tag)


def _is_answered_again(question: Message, edit: IncomingMessage, history: ChatHistory) -> bool:
    # A task may be done at any time, so its turn makes no question an older one.
    own = (m.exchange for m in reversed(history.messages) if m.role == "user" and not m.is_task)
    is_newest = next(own, 0) == question.exchange
    # Somebody has deleted a fact that it said: an answer again would bring the fact back.
    is_kept = question.seq not in history.hidden
    return is_newest and is_kept and edit.edited_at - question.sent_at <= _ANSWERED_AGAIN_S


def _change(request: Request, sender_id: int, asked: IncomingMessage) -> tuple[bytes, bytes]:
    entry = request.entries[-1]
    changed = Entry(entry.update_id, sender_id, entry.is_alone, to_bytes(asked))
    return entry.to_member(), changed.to_member()


def _nothing_said(request: Request) -> Outbox:
    return Outbox(request.to, (), is_unread=True)
