"""Receipts of erasures: what was erased, and the jobs that erase in many conversations."""

import time

import orjson
import structlog

from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.chat import Chat
from bot.telegram.errors import DECLINED, TelegramError
from bot.telegram.updates import ButtonPress
from memory.erasure.jobs import FinishedJob, Job, JobKind, Jobs
from memory.scopes.changes import Receipt

log = structlog.get_logger(__name__)


class Receipts:
    """Starts erasure jobs, and shows their receipts in place of the question."""

    def __init__(self, jobs: Jobs, chat: Chat, sentences: Sentences) -> None:
        self._jobs = jobs
        self._chat = chat
        self._sentences = sentences

    async def start(
        self, pressed: ButtonPress, nonce: str, kind: JobKind, target: int, key: str
    ) -> tuple[Part, ...]:
        """Start a job and say so; `key` begins the keys of two sentences, `started` and `done`.

        Returns () because a later edit could overwrite the receipt. Raise `StoreError`.
        """
        language = pressed.sender.language
        report = (f"{key}done", pressed.chat_id, pressed.message_id, language)
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
        """Show a job's receipt, if Telegram lets us; raise `TelegramError` to try again later."""
        key, chat_id, message_id, language = orjson.loads(finished.job.report)
        values = {**counts(finished.receipt), "conversations": finished.conversations}
        part, *_ = self._sentences.say(language, key, **values)
        try:
            await self._chat.edit(chat_id, message_id, part)
        except DECLINED as error:
            log.warning("receipt not shown", reason=type(error).__name__)


def counts(receipt: Receipt) -> dict[str, int]:
    """Return what the sentences about an erasure show."""
    return {
        "messages": receipt.messages,
        "vectors": receipt.vectors,
        "learned": receipt.records,
    }
