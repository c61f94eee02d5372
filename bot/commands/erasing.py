"""`/clear`, `/forget` and, for operators, `/clear_memory`; and the receipts of what they erased.

Each asks first. A confirmation acts at once, without waiting for a turn.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import orjson
import structlog

from bot.commands.bot_command import ANYTHING, Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part, Parts
from bot.telegram.chat import SHORT_WAIT_S, Chat, Destination
from bot.telegram.edits import is_about
from bot.telegram.errors import DECLINED, ChatMigrated, OutcomeUnknown, TelegramError
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.context import CallContext, is_first_party
from memory.erasure.jobs import FinishedJob, Job, JobKind, Jobs
from memory.erasure.questions import NotConfirmed, Question
from memory.memory import Memory
from memory.scopes.changes import Receipt
from memory.scopes.stats import count_conversation
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


class Receipts:
    """Starts erasure jobs, and shows their receipts in place of the question."""

    def __init__(self, jobs: Jobs, chat: Chat, sentences: Sentences) -> None:
        self._jobs = jobs
        self._chat = chat
        self._sentences = sentences

    async def start(
        self, pressed: ButtonPress, nonce: str, kind: JobKind, target: int, key: str
    ) -> Parts:
        """Start a job and say so; `key` begins the keys of two sentences, `started` and `done`.

        Returns () because a later edit could overwrite the receipt. Raise `StoreError`.
        """
        language = pressed.sender.language
        report = (f"{key}done", pressed.chat_id, pressed.message_id, language, pressed.topic_id)
        # People's messages have Telegram's time. If our clock is behind, everything that was said
        # before the question is erased all the same.
        cut_at = max(time.time(), pressed.asked_at)
        job = Job(nonce, kind, target, pressed.update_id, cut_at, orjson.dumps(report))
        await self._jobs.start_job(job)
        part, *_ = self._sentences.say(language, f"{key}started")
        try:
            await self._chat.edit(pressed.chat_id, pressed.message_id, part)
        except TelegramError as error:
            log.warning("button not answered", reason=type(error).__name__)
        return ()

    async def report(self, finished: FinishedJob) -> None:
        """Show a job's receipt; raise `TelegramError` to try again."""
        key, chat_id, message_id, language, topic_id = orjson.loads(finished.job.report)
        values = {**counts(finished.receipt), "conversations": finished.conversations}
        part, *_ = self._sentences.say(language, key, **values)
        await show_receipt(self._chat, Destination(chat_id, topic_id), message_id, part)


async def show_receipt(chat: Chat, to: Destination, message_id: int, part: Part) -> None:
    """Show a receipt in place of a message, or below if it is gone; raise `TelegramError`."""
    try:
        try:
            await chat.edit(to.chat_id, message_id, part)
        except DECLINED as gone:  # the message, or its group, which became a supergroup
            to = replace(to, chat_id=gone.new_chat_id) if isinstance(gone, ChatMigrated) else to
            async for wait_s in chat.waits(to.chat_id, SHORT_WAIT_S):
                await asyncio.sleep(wait_s)
            with suppress(OutcomeUnknown):  # it may be shown, and must not come twice
                await chat.send(to, part)
    except DECLINED as error:
        log.warning("receipt not shown", reason=type(error).__name__)


def counts(receipt: Receipt) -> dict[str, int]:
    """Return what the sentences about an erasure show."""
    return {"messages": receipt.messages, "vectors": receipt.vectors, "learned": receipt.records}


Deleting = Callable[[CallContext], Awaitable[None]]  # called before a conversation is erased

_TARGET = re.compile(r"(all)|(?:(chat|user) )?(-?[0-9]+)|")
_JOBS: dict[str, JobKind] = {"user": "forget", "chat": "chat", "all": "all"}


def _target_of(arguments: str, here: int) -> tuple[str, int] | None:
    """Return the kind and the id of what a command or a button names, None if it names nothing.

    A "chat" has all its topics, a "user" is a person, and "all" has the id 0.
    """
    found = _TARGET.fullmatch(" ".join(arguments.split()))
    if found is None:
        return None
    return ("all", 0) if found[1] else (found[2] or "chat", int(found[3] or here))


class ErasingCommands:
    """`/clear`, `/forget` and `/clear_memory`: each asks, and its button erases."""

    def __init__(
        self, memory: Memory, deleting: Deleting, receipts: Receipts, sentences: Sentences
    ) -> None:
        self._memory = memory
        self._questions = memory.questions
        self._forgetting = memory.forgetting
        self._deleting = deleting
        self._receipts = receipts
        self._sentences = sentences
        forgets = {"forget": self.forget, "delete_message": self.delete_message}
        erases = {"admin": self.erase_for_operator}
        self.commands = (
            BotCommand(
                "clear",
                self.ask_to_clear,
                buttons={"clear": self.clear},
                group_admins_only=True,
                section="data",
            ),
            BotCommand("forget", self.ask_to_forget, buttons=forgets, section="data"),
            BotCommand("clear_memory", self.ask_for_operator, "operators", erases, takes=ANYTHING),
        )

    async def ask_to_clear(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before this conversation is erased."""
        counted = await count_conversation(self._memory.store, conversation)
        key = "clear.ask_group" if asked.is_group else "clear.ask"
        asking = (asked.sender.language, key, Question("clear", asked.sender.id), "clear")
        return Answer(self._sentences.ask_to_erase(*asking, messages=counted.messages))

    async def clear(self, pressed: ButtonPress, here: Scope, nonce: str) -> Parts:
        """Erase the conversation; in a group any of its admins may confirm."""
        as_admin = pressed.is_group
        asker = None if as_admin else pressed.sender.id
        await self._questions.check(here, nonce, "clear", asker)
        await self._deleting(CallContext(here, pressed.sender.speaker, time.time()))
        receipt = await self._forgetting.clear(
            here, nonce, pressed.sender.id, pressed.update_id, as_admin=as_admin
        )
        values = {**counts(receipt), "waiting": receipt.waiting}
        return self._sentences.say(pressed.sender.language, "clear.done", **values)

    async def ask_to_forget(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before a person is erased everywhere; as a reply, before that message is."""
        sender, language, replied_to = asked.sender, asked.sender.language, asked.replied_to
        if not sender.is_person:  # only the asker may press, and a group cannot
            return Answer(self._sentences.say(language, "error.anonymous_admin"))
        if not replied_to:
            question = Question("forget", sender.id)
            return Answer(self._sentences.ask_to_erase(language, "forget.ask", question, "forget"))

        # One's own message, and in private also one of ours.
        named = (replied_to, asked.replied_at)
        found = await self._forgetting.find_exchange(conversation, *named, with_tasks=True)
        if not found:
            return Answer(self._sentences.say(language, "forget.message_unknown"))
        if asked.is_group and not is_first_party(sender.id, [found[0].sender_id]):
            log.info("message of another person not forgotten", user=sender.id)
            return Answer(self._sentences.say(language, "forget.message_not_yours"))
        seqs = ",".join(str(message.seq) for message in found)
        question = Question("messages", sender.id, f"{seqs}@{replied_to}@{asked.replied_at}")
        is_answer = not found[0].sender_id
        key = "forget.answer_ask" if is_answer else "forget.message_ask"
        *parts, last = self._sentences.ask_to_erase(language, key, question, "delete_message")
        if not is_answer:
            repeats = await self._forgetting.find_repeats(conversation, found)
            label = f"{self._sentences.text(language, 'buttons.erase_repeats')} ({len(repeats)})"
            also = Button(label, f"delete_message:{question.nonce}:repeats")
            last = replace(last, buttons=(*last.buttons, (also,))) if repeats else last
        return Answer((*parts, last))

    async def forget(self, pressed: ButtonPress, here: Scope, nonce: str) -> Parts:
        """Begin to erase the person; the receipt follows when all conversations are done."""
        await self._questions.check(here, nonce, "forget", pressed.sender.id)
        return await self._receipts.start(pressed, nonce, "forget", pressed.sender.id, "forget.")

    async def delete_message(self, pressed: ButtonPress, here: Scope, rest: str) -> Parts:
        """Erase one message and what was learned from it; answers that repeat it if asked for."""
        nonce, _, with_repeats = rest.partition(":")
        about = await self._questions.check(here, nonce, "messages", pressed.sender.id)
        # A second press finds the receipt of the first one, and needs no messages.
        asked_about, *named = about.split("@") if about else ("", 0, 0)
        id_, sent_at = map(int, named)

        async def find() -> set[int]:
            # Since the question was asked, the message may have been edited and stored again.
            found = await self._forgetting.find_exchange(here, id_, sent_at, with_tasks=True)
            is_wide = found and with_repeats
            repeats = await self._forgetting.find_repeats(here, found) if is_wide else set[int]()
            return repeats.union(each.seq for each in found)

        async def drop_waiting() -> None:
            await self._memory.mailbox.drop(here, lambda each: id_ > 0 and is_about(id_, each.body))

        seqs = {int(seq) for seq in asked_about.split(",") if seq}
        await drop_waiting()
        receipt = await self._forgetting.erase_messages(here, seqs, nonce, find if id_ else None)
        await drop_waiting()  # `/retry` may have taken the message out of the history
        if receipt.left:
            await self._memory.mailbox.wake(here)
        language = pressed.sender.language
        return self._sentences.say(language, "forget.message_done", **counts(receipt))

    async def ask_for_operator(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Ask before a chat, a person or everything is erased."""
        language = asked.sender.language
        target = _target_of(asked.text, asked.chat_id)
        if target is None:
            return Answer(self._sentences.say(language, "admin.clear_memory_usage"))
        kind, id_ = target
        about = kind if kind == "all" else f"{kind} {id_}"
        question, key = Question("admin", asked.sender.id, about), "admin.clear_memory_ask"
        asking = (language, key, question, f"admin:{about}")
        named = f"{self._sentences.text(language, f'admin.target_{kind}')} {id_ or ''}"
        return Answer(self._sentences.ask_to_erase(*asking, target=named))

    async def erase_for_operator(self, pressed: ButtonPress, here: Scope, rest: str) -> Parts:
        """Start the job; the receipt follows when it is done."""
        nonce, _, detail = rest.partition(":")
        about = await self._questions.check(here, nonce, "admin", pressed.sender.id)
        # After the job has run, the question is gone; the job itself still knows its target.
        target = _target_of(about or detail, pressed.chat_id)
        if target is None:
            raise NotConfirmed("unknown")
        kind, id_ = target
        return await self._receipts.start(pressed, nonce, _JOBS[kind], id_, "admin.clear_memory_")
