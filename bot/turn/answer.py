"""What a turn says: a notice, the answer of a command or an upload, or the agent's reply.

This is the outer fence of answering. An error becomes a sentence with a reference id; its details
go to the log only.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex

import structlog

from bot.agent.refused import MessageRefused, PicturesDeclined
from bot.commands.bot_command import Handler
from bot.commands.sentences import Sentences
from bot.costs.usage_counter import billed_to
from bot.documents.upload import Upload
from bot.model.model_errors import ModelError, reason_of
from bot.reply.parts import Button, with_buttons
from bot.reply.render import rendered
from bot.reply.split import with_line
from bot.telegram.admission import Admission, is_own_right
from bot.telegram.errors import TelegramError
from bot.turn.at_work import AtWork
from bot.turn.observers import Answered, NotAnswered, Observer
from bot.turn.outbox import Outbox
from bot.turn.permits import Permits
from bot.turn.request import Request
from memory.erasure.confirmations import Confirmations
from memory.queue.open_turn import OpenTurn
from memory.scopes.history import ChatHistory
from memory.store.errors import LeaseLost, StoreError

log = structlog.get_logger(__name__)

AnswerStep = Callable[[Request, ChatHistory], Awaitable[Outbox | Request | None]]
"""Returns what is said, or None if the next step has to answer.

A step may return the request with more in it, such as the words of a voice message.
"""


class Answerer:
    """Asks its steps in order, until one answers. The first step is `RevisionStep.answer`.

    `give_up` returns the notice of a turn that failed too often.
    """

    def __init__(
        self,
        steps: Sequence[AnswerStep],
        give_up: Callable[[OpenTurn], Awaitable[Outbox]],
        sentences: Sentences,
        confirmations: Confirmations,
        observe: Observer,
    ) -> None:
        self.give_up = give_up
        self._confirmations = confirmations
        self._steps = steps
        self._sentences = sentences
        self._observe = observe

    async def answer(self, request: Request, history: ChatHistory) -> Outbox:
        """Return the reply; raise `LeaseLost` or `StoreError`, no other error leaves.

        What models are asked meanwhile is billed to the person who asked.
        """
        began = time.monotonic()
        try:
            with billed_to(history.conversation, request.message.sender_id):
                for step in self._steps:
                    match await step(request, history):
                        case Outbox() as outbox:
                            return replace(outbox, heard=_heard(request))
                        case Request() as request:
                            pass
            no_step = LookupError("no step answers")
            return await self._failed(request, history, log.error, no_step)
        except (LeaseLost, StoreError):
            raise
        except PicturesDeclined as error:
            log.warning("pictures refused", **reason_of(error))
            notice = self._notice(request, "pictures.refused")
            has_words = any(each.is_first_party for each in request.messages)
            return await self._with_again(notice, request, history) if has_words else notice
        except MessageRefused as error:
            log.warning("message refused", **reason_of(error))
            return self._notice(request, "error.refused", is_refused=True)
        except (ModelError, TelegramError, TimeoutError) as error:
            return await self._failed(request, history, log.warning, error)
        except Exception as error:  # noqa: BLE001 - the outer fence; the traceback is logged
            return await self._failed(request, history, log.exception, error)
        finally:
            self._observe(Answered(time.monotonic() - began))

    async def stop(self, request: Request, history: ChatHistory) -> Outbox:
        """Return what the person has seen of a reply that they stopped, and nothing else of it.

        What rests on the question that this one replaces is erased. If that question was erased
        meanwhile, nothing is said.
        """
        if request.last.replaced:
            erased = await self._steps[0](request, history)
            if isinstance(erased, Outbox):
                return erased
        shown = request.run.shown or ""
        parts = await rendered(request.run.before + shown) if shown else ()
        if not parts:
            return self._notice(request, "stop.before")
        [mark] = self._sentences.say(request.language, "stop.mark")
        # What the reply rests on is not known any more.
        parts, heard = with_line(parts, mark), _heard(request)
        return Outbox(request.to, parts, said=shown, is_untrusted=True, heard=heard)

    async def _failed(
        self,
        request: Request,
        history: ChatHistory,
        report: Callable[..., object],
        error: Exception,
    ) -> Outbox:
        """Return the apology."""
        reference = token_hex(4)
        report("no answer", reference=reference, **reason_of(error))
        self._observe(NotAnswered(reference, type(error).__name__))
        apology = self._notice(request, "error.turn", reference=reference)
        return await self._with_again(apology, request, history)

    async def _with_again(self, notice: Outbox, request: Request, history: ChatHistory) -> Outbox:
        """Return a notice; under a question it has a button that asks again, without pictures."""
        question = request.message
        if not question.text or request.is_off_record:
            return notice
        about = f"{question.message_ids[-1]},{question.sender_id}"
        nonce = await self._confirmations.ask(
            history.conversation, "again", question.sender_id, about
        )
        button = Button(self._sentences.text(request.language, "buttons.again"), f"again:{nonce}")
        return replace(notice, parts=with_buttons(notice.parts, button))

    def _notice(
        self, request: Request, key: str, *, is_refused: bool = False, **values: object
    ) -> Outbox:
        parts = self._sentences.say(request.language, key, **values)
        return Outbox(request.to, parts, is_refused=is_refused, heard=_heard(request))


def _heard(request: Request) -> tuple[tuple[int, str], ...]:
    """Return what voice messages and photos have become."""
    return (*request.run.heard, *request.run.seen)


class CommandStep:
    """Answers commands, and everything else that needs no model.

    `admission` says who may still use the bot: an admin may remove a sender whose message waits.
    """

    def __init__(
        self, handlers: Mapping[str, Handler], sentences: Sentences, admission: Admission
    ) -> None:
        self._handlers = handlers
        self._sentences = sentences
        self._admission = admission

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Return the answer of a command, or a notice about content that the bot cannot read.

        People who may not use the bot get nothing.
        """
        last = request.last
        if not (is_own_right(last) or await self._admission.admits(last)):
            log.info("message of a stranger dropped", user=last.sender.id)
            return Outbox(request.to, (), is_unread=True)
        if last.kind == "command":
            handler = self._handlers.get(last.command)
            if handler is None:
                return self._notice(request, "error.unknown_command")
            answer = await handler(last, history.conversation)
            return Outbox(request.to, answer.parts, ends_session=answer.ends_session)
        has_media = any(each.kind in ("document", "voice", "photo") for each in request.updates)
        if not (has_media or request.message.text):
            return self._notice(request, self._sentences.known(f"unsupported.{last.text}"))
        return None

    def _notice(self, request: Request, key: str, **values: object) -> Outbox:
        return Outbox(request.to, self._sentences.say(request.language, key, **values))


class UploadStep:
    """Takes in a file; text that came with it is left to the next step.

    `upload` is None if the bot takes no files.
    """

    def __init__(
        self, upload: Upload | None, permits: Permits, at_work: AtWork, sentences: Sentences
    ) -> None:
        self._upload = upload
        self._permits = permits
        self._at_work = at_work
        self._sentences = sentences

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Return what there is to say about the file before its text is answered."""
        last = request.last
        if last.kind != "document":
            return None
        if request.is_off_record:
            return Outbox(request.to, self._sentences.say(request.language, "off.no_files"))
        if self._upload is None:
            said = self._sentences.say(request.language, "unsupported.document")
            return None if last.text else Outbox(request.to, said)
        try:
            async with self._at_work.shown(request.to):
                answer = await self._upload.receive(last, history.conversation)
        finally:
            # The model may take long for the text; the files of others need not wait for that.
            await self._permits.end_upload(history.conversation)
        if isinstance(answer, str):
            request.run.before += answer
            return None
        return Outbox(request.to, answer.parts)
