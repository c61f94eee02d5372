"""One turn, from what was sent to its commit: answer, write the outbox, deliver, commit.

A turn that fails too often is given up, and its messages become a dead letter. Attempts are counted
beside errors: a process that dies can note no error.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import structlog

from bot.commands.sentences import Sentences
from bot.reply.parts import Button, with_buttons
from bot.reply.split import without_file
from bot.telegram.errors import RefusalReason
from bot.telegram.updates import IncomingMessage, Sender, readable, to_bytes
from bot.turn.answer import Answerer
from bot.turn.deliver import Deliverer, Delivery, Parked
from bot.turn.observers import GaveUp, Observer, StepBegan, TurnBegan, TurnEnded, observed
from bot.turn.outbox import Outbox
from bot.turn.request import Request, answer_to, is_off_record, unpack, with_words
from memory.behaviors.behavior import AIContextBehaviorManager
from memory.behaviors.context import CallContext
from memory.erasure.questions import Question
from memory.message import Message
from memory.queue.dead_letters import DeadLetters
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Closing, Committed, OpenTurn
from memory.queue.turn_store import TurnStore
from memory.scopes.history import ChatHistory, Histories
from memory.store.errors import LeaseLost, StoreError, StoreFull
from memory.store.keys import Scope
from memory.work.item import due_task
from memory.work.items import WorkItems

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class TurnRunner:
    """Runs turns: several at once, but never two of one conversation."""

    turns: TurnStore
    histories: Histories
    answerer: Answerer
    give_up: Callable[[OpenTurn], Awaitable[Outbox]]  # returns the notice of a turn that failed
    deliverer: Deliverer
    behaviors: AIContextBehaviorManager
    learn: Callable[[Scope], None]  # begins to learn in the background, and returns at once
    observe: Observer
    work: WorkItems

    async def run(self, opened: OpenTurn) -> Committed:
        """Answer, deliver, commit; raise `LeaseLost`, `Interrupted`, `Parked` or `StoreError`."""
        began, observe = time.monotonic(), self.observe

        def ended(outcome: str) -> TurnEnded:
            return TurnEnded(outcome, time.monotonic() - began)

        conversation = opened.lease.conversation
        with observed(observe, TurnBegan(opened), ended, "closed"):
            observe(StepBegan("answer"))
            if is_given_up(opened):
                outbox = await self.give_up(opened)
                # The notice replaces the reply, so nothing of the reply counts as sent.
                return await self._close(replace(opened, sending=0, sent=()), outbox, began)
            request = unpack(opened, self.histories.tokens)
            if (session := opened.off_record) and not request.uses_memory:
                said = () if request.last.begins_session else session.said
                history = replace(session, said=said).history(self.histories, conversation)
            else:
                loaded = opened.loaded, opened.facts
                history = await ChatHistory.of_turn(self.histories, conversation, *loaded)
            try:
                if opened.outbox:
                    outbox = Outbox.from_bytes(opened.outbox)
                else:
                    # An edit is turned into its question first; the turn of that is stopped.
                    is_stopped = opened.is_stopped and request.last.kind != "edit"
                    answer = self.answerer.stop if is_stopped else self.answerer.answer
                    outbox = await answer(request, history)
                    observe(StepBegan("outbox"))
                    outbox = await self._write_outbox(opened, request, outbox)
                if outbox.heard:  # words of sounds and photos, for the history
                    request = with_words(request, outbox.heard, self.histories.tokens)
                return await self._close(opened, outbox, began, request, history)
            except LeaseLost:
                raise  # another process may run the turn already, so no hook is called
            except Exception:
                if request.uses_memory and request.last.kind != "command":
                    speaker = request.last.sender.speaker
                    await self.behaviors.on_suspend(CallContext(conversation, speaker, time.time()))
                raise

    async def _write_outbox(self, opened: OpenTurn, request: Request, outbox: Outbox) -> Outbox:
        """Store a reply with what its turn knows: a new session, what was heard, what it replaces.

        If Redis has no room for the bytes of files, sentences are stored in their place. An unread
        message begins and replaces nothing: the person is asked to send it again.
        """
        begins = request.last.begins_session and not outbox.is_unread
        heard = (*request.run.heard, *request.run.seen)
        outbox = replace(outbox, ends_session=outbox.ends_session or begins, heard=heard)
        if request.replaces and outbox.parts and not outbox.is_unread:
            is_below = request.last.is_retried  # else the former answer is edited
            rich = outbox.rich_parts if is_below else 0
            outbox = replace(outbox, replaces=request.replaces, rich_parts=rich, is_below=is_below)
        parts = (
            without_file(part)
            if part.file and part.file.kind != "text" and part.file.content
            else (part,)
            for part in outbox.parts
        )
        stored, smaller = outbox.to_bytes(), replace(outbox, parts=tuple(chain(*parts)))
        if smaller != outbox:
            with suppress(StoreFull):
                if len(stored) <= self.turns.room():
                    await self.turns.write_outbox(opened, stored, outbox.questions)
                    return outbox
            log.warning("no room for files of an answer", bytes=len(stored))
            stored = smaller.to_bytes()
        await self.turns.write_outbox(opened, stored, smaller.questions)
        return smaller

    async def _close(
        self,
        opened: OpenTurn,
        outbox: Outbox,
        began: float,
        request: Request | None = None,
        history: ChatHistory | None = None,
    ) -> Committed:
        """Deliver, commit, and do what follows; without `request` nothing is remembered."""
        self.observe(StepBegan("delivery"))
        mark = partial(self.turns.mark_sending, opened)
        try:
            delivery = await self.deliverer.deliver(outbox, opened.sending, opened.sent, mark)
        except Parked as parked:
            await self.turns.park(opened, int(parked.pause_s * 1000))
            raise
        self.observe(StepBegan("commit"))
        messages, closing = list[Message](), Closing()
        if request and history:
            messages, closing = self._to_commit(request, outbox, delivery)
            if request.uses_memory and request.last.is_task and delivery.refused:
                await self._end_task(request.last.update_id, delivery.refused, history)
        cursor = self.histories.cursor(opened.lease.conversation)
        commit = partial(self.turns.commit, opened, messages, cursor, closing=closing)
        try:
            committed = await self.deliverer.guard(delivery.in_doubt, commit)
        except StoreFull:
            # It refuses the index entry of a work item. It still takes the mark that all was sent.
            if outbox.parts and delivery.outcome != "undeliverable":
                await mark(len(outbox.parts), delivery.sent)
            raise
        if request and history:
            await self._after(request, history, outbox, committed)
        log.info(
            "turn closed",
            outcome=delivery.outcome,
            messages=len(opened.entries),
            parts=len(outbox.parts),
            attempts=opened.attempts,
            seconds=round(time.monotonic() - began, 3),
        )
        return committed

    def _to_commit(
        self, request: Request, outbox: Outbox, delivery: Delivery
    ) -> tuple[list[Message], Closing]:
        """Return the messages that enter the history, and what else the commit writes.

        A reply enters it if it was delivered and is no notice.
        """
        closing = Closing(outbox.ends_session, outbox.digest, outbox.writes, outbox.work)
        if not request.uses_memory:
            closing = Closing(outbox.ends_session, uses_memory=False)
        if not request.message.text or outbox.is_unread:
            return [], closing
        if outbox.is_refused:
            return [replace(each, is_refused=True) for each in request.messages], closing
        if not outbox.said or delivery.outcome == "undeliverable":
            return [*request.messages], closing
        reply = Message(
            seq=0,
            exchange=0,
            role="assistant",
            text=outbox.said,
            sent_at=time.time(),
            message_ids=delivery.sent,
            tokens=self.histories.tokens.count(outbox.said),
            is_first_party=not outbox.is_untrusted,
            used=outbox.used,
        )
        return [*request.messages, reply], closing

    async def _end_task(self, turn_id: int, refused: RefusalReason, history: ChatHistory) -> None:
        """End a task whose answer nobody can see; one that repeats ends after a month of refusals.

        Unless the chat is gone, its text is due now: the loop of due work finds a place for it.
        """
        now, conversation = self.work.now(), history.conversation
        id_, _ = due_task(turn_id, now)
        task = await self.work.find(conversation, id_)
        if not (task and task.is_task):
            return
        if refused == "chat_gone":
            await self.work.cancel(conversation, id_)
        elif refused in ("closed", "blocked") and task.is_open:
            answers = (each.sent_at for each in history.messages if each.role == "assistant")
            after = task.after_closed(now, max(answers, default=0))
            await self.work.confirm(conversation, after, task.due)
        elif refused in ("topic_gone", "closed", "blocked"):
            text = replace(task, is_task=False, rule="", due=now, closed_since=0)
            await self.work.confirm(conversation, text, task.due)

    async def _note_open(self, request: Request, conversation: Scope) -> None:
        """Note that the chat of a task is not closed any more; the history may expire."""
        if request.last.is_task:
            id_, _ = due_task(request.last.update_id, self.work.now())
            task = await self.work.find(conversation, id_)
            if task and task.is_task and task.closed_since:
                await self.work.confirm(conversation, replace(task, closed_since=0), task.due)

    async def _after(
        self, request: Request, history: ChatHistory, outbox: Outbox, committed: Committed
    ) -> None:
        """Learn from a turn that is committed, and call the hooks of its end.

        A command that ends the session is a turn without messages: it resumes and ends here. With
        words behind the command its messages belong to the next session.
        """
        messages = committed.messages
        if messages and request.uses_memory:
            history.committed(messages, committed.exchange, committed.first_seq)
        self.observe(StepBegan("after"))
        if request.uses_memory and (messages or outbox.ends_session):
            self.learn(history.conversation)
            speaker = request.last.sender.speaker
            call_context = CallContext(history.conversation, speaker, time.time())
            if outbox.ends_session:
                if not messages:
                    await self.behaviors.on_resume(call_context)
                await self.behaviors.on_conversation_checkpoint(call_context)
            for message in messages:
                if message.role == "assistant":
                    await self.behaviors.on_new_message(call_context, message)
                    with suppress(StoreError):  # else the next turn would wait for our lease
                        await self._note_open(request, history.conversation)
            await self.behaviors.on_suspend(call_context)


MAX_FAILURES = 3
"""A turn is given up at its third attempt, or after three errors if its reply is stored."""
PROCESS_DIED = "Interrupted"
"""Stored in place of an error if the process died first; not the exception of this name."""


def is_given_up(opened: OpenTurn) -> bool:
    """Return whether a turn gets a notice and nothing else."""
    if opened.failures >= MAX_FAILURES:
        return True
    if opened.outbox:  # the messages of a notice do not enter the history
        return Outbox.from_bytes(opened.outbox).is_unread
    return opened.attempts >= MAX_FAILURES and not opened.is_stopped


@dataclass(slots=True, eq=False)
class GiveUp:
    """Makes a dead letter of a turn and returns the notice."""

    letters: DeadLetters
    sentences: Sentences
    observe: Observer

    async def give_up(self, opened: OpenTurn) -> Outbox:
        """Return the notice of a turn that is given up; raise `LeaseLost` or `StoreError`.

        If even the notice has failed, the outbox has no parts, so nothing is sent.
        """
        stored = Outbox.from_bytes(opened.outbox) if opened.outbox else None
        if stored and stored.is_unread and opened.failures <= MAX_FAILURES:
            return stored
        error = opened.error or PROCESS_DIED
        log.error("turn given up", attempts=opened.attempts, failures=opened.failures, error=error)
        outbox = self._notice(opened)
        entries = tuple(map(_without_reply, opened.entries))
        last = _last_message(opened)
        is_kept = not (is_off_record(opened, [last]) or last.is_task)
        if is_kept and last.message_id and outbox.parts:
            label = self.sentences.text(last.sender.language, "buttons.again")
            question = Question("letter", last.sender.id, f"{opened.id},{last.sender.id}")
            button = Button(label, f"letter:{question.nonce}")
            outbox = replace(outbox, parts=with_buttons(outbox.parts, button, question=question))
        letter, notice = replace(opened, entries=entries), outbox.to_bytes()
        await self.letters.set_aside(letter, error, notice, outbox.questions, is_kept=is_kept)
        self.observe(GaveUp(error))
        return outbox

    def _notice(self, opened: OpenTurn) -> Outbox:
        last = _last_message(opened)
        if opened.failures > MAX_FAILURES:
            return Outbox(replace(answer_to(last), reply_to=0), (), is_unread=True)
        said = self.sentences.say(last.sender.language, "error.apology", reference=opened.id)
        former = last.replaced.answer_ids if last.replaced else ()
        return Outbox(answer_to(last), said, is_unread=True, replaces=former)


def _without_reply(entry: Entry) -> Entry:
    """Return the entry without the text it replies to, which may be another person's.

    A dead letter may stay for long, and that person's /forget would not find it.
    """
    message = readable(entry.body)
    return replace(entry, body=to_bytes(replace(message, reply=None))) if message else entry


def _last_message(opened: OpenTurn) -> IncomingMessage:
    """Return the message that is answered; one that cannot be read is replaced by its place."""
    entry, chat = opened.entries[-1], opened.lease.conversation
    return readable(entry.body) or IncomingMessage(
        update_id=entry.update_id,
        chat_id=chat.chat_id,
        topic_id=chat.topic_id,
        is_group=chat.chat_id < 0,
        message_id=0,
        sent_at=0,
        sender=Sender(entry.sender_id, ""),
        kind="unsupported",
        text="",
    )
