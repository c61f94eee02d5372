"""What a turn says: a notice, the answer of a command or an upload, or the agent's reply.

This is the outer fence of answering. An error becomes a sentence with a reference id; its details
go to the log only.

While a slow step runs, the person sees "typing" or a draft of the reply.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Protocol, TypeVar

import structlog

from bot.agent.agent import MessageRefused, PartDeclined
from bot.commands.bot_command import Handler
from bot.commands.sentences import Sentences
from bot.costs import billed_to
from bot.model.call import SoFar, watching
from bot.model.model_errors import ModelError, account_fault, reason_of
from bot.parsing.answers import NotRead
from bot.reply.render import render, rendered
from bot.reply.split import with_line
from bot.telegram.admission import Admission, is_own_right
from bot.telegram.chat import Chat
from bot.telegram.errors import FloodWait, OutcomeUnknown, Refused, TelegramError, Unreachable
from bot.telegram.updates import MEDIA, REFUSED_MARK, IncomingMessage, MediaKind, SentFile
from bot.turn.observers import Answered, NotAnswered, Observer
from bot.turn.outbox import Outbox, notice
from bot.turn.permits import Permits
from bot.turn.request import Fetched, Request
from memory.erasure.questions import Question
from memory.scopes.history import ChatHistory
from memory.scopes.scopes import Scopes
from memory.store.errors import LeaseLost, StoreError
from memory.store.keys import Scope
from memory.store.tasks import end_tasks


class Draft(Protocol):
    """Shows the reply of one run while it is written."""

    is_shown: bool  # the person sees it, so that "typing" is not needed

    def watch(self, so_far: SoFar) -> None:
        """Take an answer that grows."""

    async def keep_growing(self) -> None:
        """Show what is written until cancelled; raise nothing else."""


DraftOf = Callable[[Request], Draft | None]
"""Returns the draft of a turn, None where there is none."""
_DOWNLOAD_AGAIN_S = 1.0  # after a failed connection, or without an answer
_MAX_BAN_S = 60.0  # so long a turn waits for the end of a ban, which may last a day
_TYPING_EVERY_S = 4.5  # Telegram shows it for five seconds


@dataclass(frozen=True, slots=True, eq=False)
class TypingIndicator:
    """Shows "typing" or a draft, and limits how long the slow steps of a turn take.

    All slow steps of a run have `timeout_s` together, from the beginning of the first one.
    """

    chat: Chat
    timeout_s: float
    draft_of: DraftOf = lambda _: None

    @asynccontextmanager
    async def shown(self, request: Request) -> AsyncIterator[None]:
        """Show what is done until the block ends; raise `TimeoutError` at the turn's deadline."""
        run, draft = request.run, self.draft_of(request)
        run.ends_at = run.ends_at or asyncio.get_running_loop().time() + self.timeout_s

        async def keep_typing() -> None:
            """Give up when a call fails: the reply matters, this does not."""
            with suppress(TelegramError):
                while not request.last.is_task:  # a task may have nothing to say
                    if draft is None or not draft.is_shown:
                        await self.chat.show_typing(request.to)
                    await asyncio.sleep(_TYPING_EVERY_S)

        showing = [keep_typing(), draft.keep_growing()] if draft else [keep_typing()]
        tasks = [asyncio.create_task(each) for each in showing]
        try:
            with watching(draft.watch) if draft else nullcontext():
                async with asyncio.timeout_at(run.ends_at):
                    yield
        finally:
            await end_tasks(tasks)


log = structlog.get_logger(__name__)

T = TypeVar("T")

AnswerStep = Callable[[Request, ChatHistory], Awaitable[Outbox | Request | None]]
"""Returns what is said, or None if the next step has to answer.

A step may return the request with more in it, such as the words of a voice message.
"""


def _read(step: AnswerStep, answer: object, request: Request) -> Outbox | Request:
    """Return what a step answered, or the request for the next one; log what it may not return."""
    if isinstance(answer, Outbox | Request):
        return answer
    if answer is not None:
        name = getattr(step, "__qualname__", type(step).__name__)
        log.error("class failed", what="step", error=f"{name} returned {type(answer).__name__}")
    return request


@dataclass(slots=True, eq=False)
class Answerer:
    """Asks its steps, which `turn_worker` lists, until one answers; first `RevisionStep.answer`."""

    steps: Sequence[AnswerStep]
    sentences: Sentences
    observe: Observer

    async def answer(self, request: Request, history: ChatHistory) -> Outbox:
        """Return the reply; raise `LeaseLost` or `StoreError`, no other error leaves.

        What models are asked meanwhile is billed to the person who asked.
        """
        began = time.monotonic()
        try:
            with billed_to(history.conversation, request.payer):
                for step in self.steps:
                    answer = _read(step, await step(request, history), request)
                    if isinstance(answer, Outbox):
                        return answer
                    request = answer  # an apology asks about it, too
            return self._failed(request, log.error, LookupError("no step answers"))
        except (LeaseLost, StoreError):
            raise
        except PartDeclined as error:
            log.warning("part declined", sentence=str(error), **reason_of(error))
            refused = notice(request, self.sentences, str(error))
            request.run.seen = tuple((i, f"{mark} {REFUSED_MARK}") for i, mark in request.run.seen)
            has_words = any(each.is_first_party for each in request.messages)
            return self._with_again(refused, request) if has_words else refused
        except MessageRefused as error:
            log.warning("message refused", **reason_of(error))
            return replace(notice(request, self.sentences, "error.refused"), is_refused=True)
        except (ModelError, TelegramError, TimeoutError) as error:
            return self._failed(request, log.warning, error)
        except Exception as error:  # noqa: BLE001 - the outer fence; the traceback is logged
            return self._failed(request, log.exception, error)
        finally:
            self.observe(Answered(time.monotonic() - began))

    async def stop(self, request: Request, history: ChatHistory) -> Outbox:
        """Return what the person has seen of a reply that they stopped, and nothing else of it.

        What rests on the question that this one replaces is erased. If that question was erased
        meanwhile, nothing is said.
        """
        if request.last.replaced:
            erased = await self.steps[0](request, history)
            if isinstance(erased, Outbox):
                return erased
        shown = request.run.shown or ""
        parts = await rendered(request.run.before + shown) if shown else ()
        if not parts:
            return notice(request, self.sentences, "stop.before")
        [mark] = self.sentences.say(request.language, "stop.mark")
        # What the reply rests on is not known any more.
        return Outbox(request.to, with_line(parts, mark), said=shown, is_untrusted=True)

    def _failed(self, request: Request, report: Callable[..., object], error: Exception) -> Outbox:
        """Return the apology; a fault of the operator's account has no button to ask again."""
        reference = token_hex(4)
        report("no answer", reference=reference, **reason_of(error))
        self.observe(NotAnswered(reference, type(error).__name__))
        if account_fault(error):
            return notice(request, self.sentences, "error.account", reference=reference)
        apology = notice(request, self.sentences, "error.turn", reference=reference)
        return self._with_again(apology, request)

    def _with_again(self, apology: Outbox, request: Request) -> Outbox:
        """Return a notice; under a question it has a button that asks again."""
        said = request.message
        if not (said.text and request.uses_memory):
            return apology
        question = Question("again", said.sender_id, f"{said.message_ids[-1]},{said.sender_id}")
        asking = self.sentences.ask(request.language, apology.parts, question, "again")
        return replace(apology, parts=asking)


@dataclass(frozen=True, slots=True, eq=False)
class CommandStep:
    """Answers commands, and everything else that needs no model."""

    answer_command: Handler
    sentences: Sentences
    admission: Admission  # an operator may have removed a sender whose message waits

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Return the answer of a command, or a notice about content that the bot cannot read.

        People whom this process may not serve get a notice: another one has accepted the message.
        """
        last = request.last
        if not (is_own_right(last) or await self.admission.admits(last)):
            log.info("message of a stranger refused", user=last.sender.id)
            return replace(notice(request, self.sentences, "error.not_served"), is_unread=True)
        if last.kind == "command":
            answer = await self.answer_command(last, history.conversation)
            return Outbox(request.to, answer.parts, ends_session=answer.ends_session)
        if not (request.message.text or any(each.kind in MEDIA for each in request.updates)):
            return notice(request, self.sentences, self.sentences.known(f"unsupported.{last.text}"))
        return None


async def download(chat: Chat, file: SentFile, max_bytes: int) -> bytes:
    """Return the content of a file; raise `NotRead` ("too_big", "gone") or `TelegramError`."""
    if file.nbytes > max_bytes:
        raise NotRead("too_big")
    try:
        try:  # a second try does no harm: a download changes nothing
            return await chat.download(file.file_id, max_bytes)
        except (FloodWait, OutcomeUnknown, Unreachable) as error:
            ban_s = error.retry_after_s if isinstance(error, FloodWait) else 0
            if ban_s > _MAX_BAN_S:
                raise
            await asyncio.sleep(max(_DOWNLOAD_AGAIN_S, ban_s))
        return await chat.download(file.file_id, max_bytes)
    except Refused as refusal:
        raise NotRead("too_big" if refusal.reason == "too_big" else "gone") from refusal


async def read_media(
    request: Request,
    sent: Sequence[IncomingMessage],
    read: Callable[[SentFile], Awaitable[T]],
    sentences: Sentences,
    table: str,
) -> list[tuple[int, T]]:
    """Return what `read` makes of the files of these messages, by their ids.

    If one cannot be read (`NotRead`), the others are read all the same. The sentence of its reason,
    a key of `table`, stands below the answer, unless words were sent and no file but a sticker.
    """
    found, reasons = list[tuple[int, T]](), dict[str, None]()
    for each in sent:
        try:
            file = each.file or SentFile("", "", "", 0)  # Telegram has none with such an id
            found.append((each.message_id, await read(file)))
        except NotRead as refusal:
            reasons[refusal.reason] = None
    if reasons:
        log.info("media not read", table=table, reasons=tuple(reasons))
    if reasons and not (request.brings_no_file and request.message.text):
        keys = [*(["not_all"] if found else []), *reasons]
        values = {"read": len(found), "count": len(sent)}
        said = (sentences.text(request.language, f"{table}.{key}", **values) for key in keys)
        request.run.media_notes += (" ".join(said),)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class FileFetcher:
    """Fetches files of at most `max_bytes` that are read for the memory."""

    chat: Chat
    scopes: Scopes
    max_bytes: int = 20 * 2**20  # Telegram lets bots fetch no larger file

    async def fetch(self, request: Request, file: SentFile, conversation: Scope) -> Fetched:
        """Return the file of a turn, fetched once; raise `NotRead`, `TelegramError`, `StoreError`.

        A text that was pasted is its own content.
        """
        if not request.fetched:
            here = await self.scopes.current(conversation)
            content = file.pasted.encode() or await download(self.chat, file, self.max_bytes)
            request.fetched.append(Fetched(here, content))
        return request.fetched[0]


@dataclass(frozen=True, slots=True, eq=False)
class FileSteps:
    """Asks the steps to read the files of a message. Then it gives the permits for files back."""

    file_steps: Sequence[tuple[MediaKind, AnswerStep]]  # a kind of file, and a step that reads it
    permits: Permits
    files: FileFetcher
    at_work: TypingIndicator
    sentences: Sentences

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | Request | None:
        """Return what there is to say about the files, or the request with what they hold.

        Off the record no file is read. One that is refused, or that no step reads, gets a sentence.
        Notes of the steps are said at once if there is nothing to answer.
        """
        kinds = {each.kind for update in request.updates for each in update.media}
        if not kinds:
            return None
        try:
            if request.last.is_file and not request.uses_memory:
                return notice(request, self.sentences, "off.no_files")
            async with self.at_work.shown(request):
                for kind, step in self.file_steps:
                    if kind in kinds:
                        answer = _read(step, await step(request, history), request)
                        if isinstance(answer, Outbox):
                            return answer
                        request = answer
        except NotRead as refusal:
            log.info("file refused", reason=refusal.reason)
            key, file = f"files.refused_{refusal.reason}", request.last.file
            if not self.sentences.has(key):
                key = "files.refused_damaged"
            max_mb = f"{self.files.max_bytes / 2**20:.3g}"
            values = {"name": file.name if file else "", "mb": max_mb}
            return notice(request, self.sentences, key, **values)
        finally:
            await self.permits.end(request.run, "uploads")
        if request.message.text.strip():
            if not kinds <= dict(self.file_steps).keys():
                note = self.sentences.text(request.language, "unsupported.attached")
                request.run.media_notes += (note,)
            return request
        said = render("\n\n".join(request.run.media_notes))
        key = self.sentences.known(f"unsupported.{request.last.kind}")
        return Outbox(request.to, said or self.sentences.say(request.language, key))
