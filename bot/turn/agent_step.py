"""The agent's reply to one message: load its context, run the agent, make the parts."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from secrets import token_urlsafe

import structlog

from bot.commands.consent import confirmations, questions
from bot.commands.sentences import Sentences
from bot.model.model_errors import summary
from bot.reply.long_reply import MAX_CHARS, is_worth_rich, reply_parts
from bot.reply.parts import Button, Part, with_buttons
from bot.reply.render import render
from bot.reply.split import said_with, with_attached, with_line
from bot.turn.draft import TypingIndicator
from bot.turn.load import ContextLoader
from bot.turn.notes import QUESTION_ALONE
from bot.turn.observers import AgentRan, Observer, StepBegan
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from bot.turn.save_claims import NOTHING_KEPT, CheckedAgent
from bot.turn.tool_questions import question_text, with_question
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import digest
from memory.behaviors.tool_output import OutgoingFile
from memory.behaviors.trust import is_answer_untrusted
from memory.behaviors.user_facts import question_for
from memory.message import CLAIM
from memory.scopes.history import ChatHistory
from memory.scopes.writes import ForgetRecord, Remember, StillTrue, ToolWrite, to_json
from memory.work.item import WorkChanges

log = structlog.get_logger(__name__)

_MAX_USED = 64
"""So many memories are kept beside an answer; each takes a few bytes."""


class AgentStep:
    """Answers every message that reaches it."""

    def __init__(
        self,
        agent: CheckedAgent,
        loader: ContextLoader,
        sentences: Sentences,
        at_work: TypingIndicator,
        observe: Observer,
    ) -> None:
        self._agent = agent
        self._loader = loader
        self._sentences = sentences
        self._at_work = at_work
        self._observe = observe

    async def answer(self, request: Request, history: ChatHistory) -> Outbox:
        """Return the reply; raise `ModelError`, `MessageRefused`, `TimeoutError`, `LeaseLost`."""
        reply = failure = ""
        async with self._at_work.answering(request):
            self._observe(StepBegan("recall"))
            context = await self._loader.load(request, history)
            load_s = time.time() - context.now
            self._observe(StepBegan("model"))
            agreed = self._agent.agreed
            if request.last.agreed and not (agreed and await agreed.bring(request, context)):
                return Outbox(request.to, (), is_unread=True)
            try:
                finish = await self._agent.run(context)
                reply = finish.text
            except BaseException as error:
                failure = summary(error)
                raise
            finally:
                run_s = time.time() - context.now
                self._observe(AgentRan(context, reply, failure, run_s, load_s))
            if context.tool_question and agreed:
                text = question_text(self._sentences, request.language, context.tool_question)
                outbox = await self._outbox(request, context, text, checks=False)
                asking = (request.message.sender_id, context.tool_question)
                parts = with_question(self._sentences, request.language, outbox.parts, *asking)
                outbox = replace(outbox, parts=parts)
            else:
                outbox = await self._outbox(request, context, finish.text)
            for change in self._agent.finishes:
                outbox = await change(request, outbox)
            return outbox

    async def _outbox(
        self, request: Request, context: AgentContext, text: str, *, checks: bool = True
    ) -> Outbox:
        """Return the reply, with a line or a question for each thing that tools want written.

        `checks`: a false claim of the text is corrected.
        """
        language = request.language
        below = [await note(request, context, text) for note in self._agent.notes]
        asked = tuple(part for each in below for part in each.questions)
        say = partial(self._sentences.text, language)
        parts, is_whole = await reply_parts(request.run.before + text, say)
        if asked and not request.run.before and text.strip() == QUESTION_ALONE:
            parts, text = asked, asked[0].text
            asked = ()
        attached = [self._attached(language, file) for file in context.files]
        parts = with_attached(parts, attached, as_caption=context.tool_question is None)
        if not parts:
            log.warning("empty answer")
            return Outbox(request.to, self._sentences.say(language, "error.empty_answer"))
        if not is_whole:
            log.warning("answer cut", chars=len(text))
            parts = with_line(parts, *self._sentences.say(language, "error.too_long_answer"))
        writes = await _wanted(context)
        asked_later = {write.nonce for write in context.writes if write.nonce}
        learned = [w for w in writes if isinstance(w, Remember) and w.nonce in asked_later]
        writes = [write for write in writes if write.nonce not in asked_later]
        corrections = [each.correction for each in below if each.correction and checks]
        claim = ""
        if checks and not corrections:
            claim = await self._agent.correction(context, text)
        lines = self._not_seen(request)
        lines += confirmations(self._sentences, language, writes)
        lines += [*(part for each in below for part in each.lines), *corrections[:1]]
        lines += self._marks(request, claim)
        is_rich = is_whole and not lines and not request.run.before and is_worth_rich(text, parts)
        rich_parts = len(parts) if is_rich else 0
        for line in lines:
            parts = with_line(parts, line)
        if request.run.heard and not request.is_off_record:
            parts = with_buttons(parts, self._misheard(request))
        asked = questions(self._sentences, language, writes) + asked
        # The person may decline: then what the tools did must not teach anything either.
        is_asking = bool(asked) or any(each.questions for each in below)
        steps = () if is_asking else context.completed_steps
        if not (is_asking or learned) and (aged := await _aged(request, context, text)):
            asked, writes = questions(self._sentences, language, aged), [*writes, *aged]
        return Outbox(
            request.to,
            parts + asked + questions(self._sentences, language, learned, are_cards=True),
            said=said_with(text[:MAX_CHARS], attached),
            digest=digest(steps),
            # The text of a learned fact stays where an erasure finds it.
            writes=to_json([*writes, *(replace(each, text="") for each in learned)]).decode(),
            is_untrusted=is_answer_untrusted(context),
            rich_parts=rich_parts,
            work=_in_chat(context.work, request).encode(),
            used=" ".join(_used(context, language, claim)),
        )

    def _marks(self, request: Request, claim: str) -> list[Part]:
        """Return the correction of a false claim, and the mark of an answer off the record."""
        is_told = claim not in ("", NOTHING_KEPT)
        keys = (is_told and claim, request.is_off_record and "off.mark")
        said = (self._sentences.say(request.language, key) for key in keys if key)
        return [line for lines in said for line in lines]

    def _attached(self, language: str, file: OutgoingFile) -> Part:
        """Return a part with a file of a tool, and what is said if the chat does not take it."""
        [instead] = self._sentences.say(language, "answer.not_sent", name=file.name)
        return Part("", file=file, instead=instead.text)

    def _not_seen(self, request: Request) -> list[Part]:
        """Return notes on what came with the message and was not seen or heard."""
        # The steps for photos and voice messages say themselves what they could not read.
        is_unknown = any(
            each.unseen and each.kind not in ("photo", "voice") for each in request.updates
        )
        known = [part for note in request.run.notes for part in render(note)]
        if request.message.unseen and is_unknown:
            known += self._sentences.say(request.language, "unsupported.attached")
        return known

    def _misheard(self, request: Request) -> Button:
        """Return the button by which a person says what they really said."""
        heard_id, _ = request.run.heard[-1]
        said = next(each for each in request.updates if each.message_id == heard_id)
        about = f"misheard:{heard_id}.{said.sender.id}.{said.sent_at}"
        return Button(self._sentences.text(request.language, "buttons.misheard"), about)


def _used(context: AgentContext, language: str, correction: str) -> Iterator[str]:
    """Yield the codes that are kept beside an answer."""
    if correction == NOTHING_KEPT:
        yield f"{CLAIM}{language}"
    yield from context.used[:_MAX_USED]


async def _wanted(context: AgentContext) -> list[ToolWrite]:
    """Return what tools want written; while memory is off, only what they want forgotten.

    What needs an answer has the nonce of its buttons.
    """
    wanted: list[ToolWrite] = list(context.writes)
    forgets = [write for write in wanted if isinstance(write, ForgetRecord)]
    if len(forgets) < len(wanted) and await context.chat_history.is_off():
        wanted = [*forgets]
    return [
        replace(each, nonce=each.nonce or token_urlsafe(12)) if each.asks_first else each
        for each in wanted
    ]


async def _aged(request: Request, context: AgentContext, text: str) -> list[StillTrue]:
    """Return the question whether an old fact still holds, if it was used; none while off."""
    said = f"{request.message.text}\n{text}"
    aged = question_for(context.writes, context.used, said)
    return [] if aged and await context.chat_history.is_off() else aged


def _in_chat(changes: WorkChanges, request: Request) -> WorkChanges:
    """Return the changes, with the chat in which the new items were asked for."""
    to = request.to
    added = [replace(each, chat_id=to.chat_id, topic_id=to.topic_id) for each in changes.added]
    return replace(changes, added=added)
