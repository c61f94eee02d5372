"""The agent's reply to one message: load its context, run the agent, make the parts."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from bot.commands.consent import cards, confirmations, questions, with_nonces
from bot.commands.reminder_questions import in_chat, reminder_lines, reminder_questions
from bot.commands.sentences import Sentences
from bot.model.model_errors import summary
from bot.reply.long_reply import MAX_CHARS, reply_parts
from bot.reply.rich import is_worth_rich
from bot.reply.split import with_line
from bot.turn.at_work import AtWork
from bot.turn.load import ContextLoader
from bot.turn.observers import AgentRan, Observer
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import FinishAction, digest
from memory.behaviors.trust import is_answer_untrusted
from memory.scopes.history import ChatHistory
from memory.scopes.writes import ForgetRecord, Remember, ToolWrite, to_json

log = structlog.get_logger(__name__)

_MAX_USED = 64
"""So many memories are kept beside an answer; each takes a few bytes."""

RunAgent = Callable[[AgentContext], Awaitable[FinishAction]]
"""Answers what a context holds; raises `ModelError` or `MessageRefused`."""


class AgentStep:
    """Answers every message that reaches it."""

    def __init__(
        self,
        run_agent: RunAgent,
        loader: ContextLoader,
        sentences: Sentences,
        at_work: AtWork,
        observe: Observer,
    ) -> None:
        self._run_agent = run_agent
        self._loader = loader
        self._sentences = sentences
        self._at_work = at_work
        self._observe = observe

    async def answer(self, request: Request, history: ChatHistory) -> Outbox:
        """Return the reply; raise `ModelError`, `MessageRefused`, `TimeoutError`, `LeaseLost`."""
        reply = failure = ""
        async with self._at_work.answering(request):
            context = await self._loader.load(request, history)
            try:
                finish = await self._run_agent(context)
                reply = finish.text
            except BaseException as error:
                failure = summary(error)
                raise
            finally:
                self._observe(AgentRan(context, reply, failure, time.time() - context.now))
            return await self._outbox(request, context, finish.text)

    async def _outbox(self, request: Request, context: AgentContext, text: str) -> Outbox:
        """Return the reply, with a line or a question for each thing that tools want written."""
        language = request.language
        parts, is_whole = await reply_parts(
            text, lambda: self._sentences.say(language, "answer.file")[0]
        )
        if not parts:
            log.warning("empty answer")
            return Outbox(request.to, self._sentences.say(language, "error.empty_answer"))
        if not is_whole:
            log.warning("answer cut", chars=len(text))
            parts = with_line(parts, *self._sentences.say(language, "error.too_long_answer"))
        if request.message.unseen:
            for line in self._sentences.say(language, "unsupported.attached"):
                parts = with_line(parts, line)
        writes = await _wanted(context)
        asked_later = {write.nonce for write in context.writes if write.nonce}
        learned = [w for w in writes if isinstance(w, Remember) and w.nonce in asked_later]
        writes = [write for write in writes if write.nonce not in asked_later]
        reminders = in_chat(context.reminders, request.last)
        lines = confirmations(self._sentences, language, writes)
        lines += reminder_lines(self._sentences, language, reminders)
        if request.is_off_record:
            lines += self._sentences.say(language, "off.mark")
        is_rich = is_whole and not lines and is_worth_rich(text, parts)
        rich_parts = len(parts) if is_rich else 0
        for line in lines:
            parts = with_line(parts, line)
        asked = questions(self._sentences, language, writes)
        asked += reminder_questions(self._sentences, language, reminders)
        # The person may decline: then what the tools did must not teach anything either.
        steps = () if asked else context.completed_steps
        return Outbox(
            request.to,
            parts + asked + cards(self._sentences, language, learned),
            said=text[:MAX_CHARS],
            digest=digest(steps),
            # The text of a learned fact stays where an erasure finds it.
            writes=to_json([*writes, *(replace(each, text="") for each in learned)]).decode(),
            is_untrusted=is_answer_untrusted(context),
            rich_parts=rich_parts,
            reminders=reminders.encode(),
            used=" ".join(context.used[:_MAX_USED]),
        )


async def _wanted(context: AgentContext) -> list[ToolWrite]:
    """Return what tools want written; while memory is off, only what they want forgotten."""
    forgets = [write for write in context.writes if isinstance(write, ForgetRecord)]
    if len(forgets) < len(context.writes) and await context.chat_history.is_off():
        return with_nonces(forgets)
    return with_nonces(context.writes)
