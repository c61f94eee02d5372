"""What a turn says: a command's sentence, the agent's reply, or a neutral sentence when it fails.

The outer fence of a turn: trouble becomes a sentence with a reference, details go to the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_hex

import structlog

from bot.agent.refused import WordsRefused
from bot.commands.access import asker_of
from bot.commands.answer import Answer, Handler
from bot.commands.consent import confirmations, questions, with_nonces
from bot.commands.sentences import Sentences
from bot.model.model_errors import ModelError, reason_of
from bot.reply.render import MAX_CHARS, reply_parts
from bot.reply.split import with_line
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import TelegramError
from bot.telegram.updates import IncomingMessage
from bot.turn.hooks import TurnHooks, call_context_of
from bot.turn.outbox import Outbox
from bot.turn.typing import typing
from memory.behaviors.call_context import Asker
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import FinishAction, digest
from memory.behaviors.trust import is_answer_untrusted
from memory.message import Message
from memory.queue.open_turn import LeaseLost
from memory.scopes.history import ChatHistory
from memory.scopes.selectors import MessageSelector
from memory.scopes.writes import ForgetRecord, ToolWrite, to_json
from memory.search.message_search import SearchResult
from memory.store.errors import StoreError
from memory.store.keys import Scope
from memory.text.speakers import Speakers

log = structlog.get_logger(__name__)

RunAgent = Callable[[AgentContext], Awaitable[FinishAction]]
Receive = Callable[[IncomingMessage, Scope], Awaitable[Answer | None]]
"""Takes in a file; answers nothing where the words that came with it are still to be answered."""


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How much of the past a turn sees, and how long it may take."""

    selector: MessageSelector
    recall_k: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Desks:
    """Who answers before the model does: commands by name, `receive` files if they are taken."""

    commands: Mapping[str, Handler]
    receive: Receive | None = None


class TurnAnswerer:
    """Answers one person's messages."""

    def __init__(
        self,
        run_agent: RunAgent,
        desks: Desks,
        sentences: Sentences,
        chat: Chat,
        hooks: TurnHooks,
        options: AnswerOptions,
    ) -> None:
        self._run_agent = run_agent
        self._desks = desks
        self._sentences = sentences
        self._chat = chat
        self._hooks = hooks
        self._options = options

    async def answer(
        self, mail: Sequence[IncomingMessage], words: Message, history: ChatHistory
    ) -> Outbox:
        """Return the reply; trouble other than with the store becomes a sentence."""
        last = mail[-1]
        try:
            if outbox := await self._at_once(last, words, history):
                return outbox
            async with typing(self._chat, Destination(last.chat_id, last.topic_id)):
                return await self._reply(last, words, history)
        except (LeaseLost, StoreError):
            raise
        except WordsRefused as error:
            log.warning("words refused", **reason_of(error))
            return replace(self._notice(last, "error.refused"), refused=True)
        except (ModelError, TelegramError, TimeoutError) as error:
            return self._failed(last, log.warning, error)
        except Exception as error:  # noqa: BLE001 - the outer fence; the traceback is logged
            return self._failed(last, log.exception, error)

    def apologise(self, mail: Sequence[IncomingMessage], reference: str) -> Outbox:
        """Return the reply to messages that could not be answered after several tries."""
        return self._notice(mail[-1], "error.apology", reference=reference)

    async def _at_once(
        self, last: IncomingMessage, words: Message, history: ChatHistory
    ) -> Outbox | None:
        """Return what is said without asking the model, or nothing where it is to be asked."""
        match last.kind:
            case "command":
                return await self._command(last, history)
            case "document":
                return await self._received(last, history)
            case "stranger":
                log.info("stranger refused", user=last.sender.id)
                return self._notice(last, "error.stranger", id=str(last.sender.id))
            case _ if not words.text:
                return self._notice(last, self._sentences.known(f"unsupported.{last.text}"))
            case _:
                return None

    async def _reply(self, last: IncomingMessage, words: Message, history: ChatHistory) -> Outbox:
        window = history.select_messages(self._options.selector)
        is_admin = partial(self._is_admin, asker_of(last, self._chat))
        writes: list[ToolWrite] = []
        call_context = replace(call_context_of(last, history.conversation, is_admin), writes=writes)
        async with asyncio.timeout(self._options.timeout_s):
            recalled, memories = await asyncio.gather(
                self._recall(words, window, history),
                self._hooks.begin(call_context, history, words),
            )
            context = AgentContext(
                conversation=history.conversation,
                chat_history=history,
                now=call_context.now,
                user_message=words,
                is_group=last.is_group,
                speakers=_speakers(recalled, words, history) if last.is_group else None,
                window=window,
                recalled=recalled,
                memory_context=memories,
                call_context=call_context,
                writes=writes,
            )
            finish = await self._run_agent(context)
        parts, is_whole = await reply_parts(finish.text)
        if not parts:
            log.warning("empty answer")
            return self._notice(last, "error.empty_answer")
        if not is_whole:
            log.warning("answer cut", chars=len(finish.text))
            parts += self._sentences.say(last.sender.language, "error.too_long_answer")
        wanted = await _writes(context)
        for line in confirmations(self._sentences, last.sender.language, wanted):
            parts = with_line(parts, line)
        asked = questions(self._sentences, last.sender.language, wanted)
        outbox = self._outbox(last, Answer(parts + asked), said=finish.text[:MAX_CHARS])
        # What is perhaps declined must not come back by way of what the tools did.
        steps = () if asked else context.completed_steps
        return replace(
            outbox,
            digest=digest(steps),
            writes=to_json(wanted).decode(),
            untrusted=is_answer_untrusted(context),
        )

    async def _recall(
        self, words: Message, window: Sequence[Message], history: ChatHistory
    ) -> tuple[SearchResult, ...]:
        seen = frozenset(message.seq for message in window)
        found = await history.search(words.text, self._options.recall_k, exclude=seen)
        return tuple(found)

    async def _is_admin(self, asker: Asker) -> bool:
        """Ask for a tool; where Telegram does not answer nobody is an administrator."""
        try:
            return await asker.is_admin()
        except TelegramError as error:
            log.warning("admins unknown", reason=type(error).__name__)
            return False

    async def _received(self, sent: IncomingMessage, history: ChatHistory) -> Outbox | None:
        """Take in a file; return what is to be said of it before its words are answered."""
        if self._desks.receive is None:
            return None if sent.text else self._notice(sent, "unsupported.document")
        async with (
            typing(self._chat, Destination(sent.chat_id, sent.topic_id)),
            asyncio.timeout(self._options.timeout_s),
        ):
            answer = await self._desks.receive(sent, history.conversation)
        return self._outbox(sent, answer) if answer else None

    async def _command(self, asked: IncomingMessage, history: ChatHistory) -> Outbox:
        handler = self._desks.commands.get(asked.command)
        if handler is None:
            return self._notice(asked, "error.unknown_command")
        return self._outbox(asked, await handler(asked, history.conversation))

    def _failed(
        self, last: IncomingMessage, report: Callable[..., object], error: Exception
    ) -> Outbox:
        reference = token_hex(4)
        report("no answer", reference=reference, **reason_of(error))
        return self._notice(last, "error.turn", reference=reference)

    def _notice(self, last: IncomingMessage, key: str, **values: object) -> Outbox:
        return self._outbox(last, Answer(self._sentences.say(last.sender.language, key, **values)))

    def _outbox(self, last: IncomingMessage, answer: Answer, *, said: str = "") -> Outbox:
        return Outbox(
            chat_id=last.chat_id,
            topic_id=last.topic_id,
            reply_to=last.message_id if last.is_group else 0,
            parts=answer.parts,
            said=said,
            ends_session=answer.ends_session,
        )


async def _writes(context: AgentContext) -> list[ToolWrite]:
    """Return what tools want written; while memory is off only what is to be forgotten."""
    forgets = [write for write in context.writes if isinstance(write, ForgetRecord)]
    if len(forgets) < len(context.writes) and await context.chat_history.is_off():
        return with_nonces(forgets)
    return with_nonces(context.writes)


def _speakers(recalled: Sequence[SearchResult], words: Message, history: ChatHistory) -> Speakers:
    """Return the people of a group in the order in which they spoke, whoever speaks now last."""
    remembered = (message for found in recalled for message in found.messages)
    return Speakers((*history.messages, *remembered, words))
