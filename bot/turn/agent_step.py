"""The agent's reply to one message: load its context, run the agent, make the parts.

A tool from outside asks before it runs. A yes goes into the mailbox like a message, and its turn
runs the tool.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from secrets import token_urlsafe

import orjson
import structlog

from bot.commands.fact_edits import confirmations, questions
from bot.commands.sentences import Sentences
from bot.reply.parts import Part, Parts, with_buttons
from bot.reply.render import MAX_CHARS, render, reply_parts
from bot.reply.source import is_worth_rich
from bot.reply.split import said_with, with_attached, with_line
from bot.telegram.updates import MEDIA
from bot.turn.answer import TypingIndicator
from bot.turn.load import Assistant, ContextLoader
from bot.turn.notes import QUESTION_ALONE, Below, Finish, Note
from bot.turn.observers import AgentRan, Observer, StepBegan
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import (
    UNTRUSTED_STEP,
    Action,
    CompletedStep,
    ToolCall,
    ToolQuestion,
    ToolResult,
)
from memory.behaviors.tool import is_answer_untrusted
from memory.behaviors.user_facts import question_for
from memory.erasure.questions import Question, Questions
from memory.scopes.history import ChatHistory
from memory.scopes.writes import ForgetRecord, Remember, StillTrue, ToolWrite, to_json

log = structlog.get_logger(__name__)

RUN, DONT_RUN = "run_tool", "dont_run_tool"
"""The verbs of the two buttons below the question; a feature has their handlers."""
_VALID_S = 600
_UNKNOWN = (
    "Error: the tool was started and the bot stopped before its result came, so it is not known "
    "whether it did its work. Tell the person, and do not call it again by yourself."
)


def question_of(asker: int, asked: ToolQuestion) -> Question:
    """Return the question as it is stored: `asker` may agree within ten minutes."""
    about = orjson.dumps([time.time() + _VALID_S, *astuple(asked)]).decode()
    return Question("tool", asker, about)


def asked_in(about: str) -> tuple[float, ToolQuestion]:
    """Return until when a stored question may be answered (Unix seconds), and what it asks."""
    until, *asked = orjson.loads(about)
    return until, ToolQuestion(*asked)


_MAX_USED = 64  # so many memories are kept beside an answer; each takes a few bytes
_CALL_CHARS, _RESULT_CHARS, _DIGEST_CHARS = 200, 300, 2_000


@dataclass(frozen=True, slots=True, eq=False)
class AgentStep:
    """The last step of a turn: has the agent answer what no step before it has answered."""

    loader: ContextLoader
    sentences: Sentences
    at_work: TypingIndicator
    observe: Observer
    questions: Questions
    notes: Sequence[Note] = ()  # of features
    finishes: Sequence[Finish] = ()  # of features
    sends_rich: bool = False  # tables and block formulas go out as rich messages

    async def answer(self, request: Request, history: ChatHistory) -> Outbox:
        """Return the reply; raise `ModelError`, `MessageRefused`, `TimeoutError`, `LeaseLost`."""
        async with self.at_work.shown(request):
            self.observe(StepBegan("recall"))
            context = await self.loader.load(request, history)
            load_s = time.time() - context.now
            self.observe(StepBegan("model"))
            assistant = self.loader.assistant.within(context.conversation)
            if request.last.agreed and not await self._run_agreed(request, context, assistant):
                return Outbox(request.to, (), is_unread=True)
            try:
                reply = (await assistant.run(context)).text
            except BaseException as error:
                self.observe(AgentRan(context, "", error, time.time() - context.now, load_s))
                raise
            self.observe(AgentRan(context, reply, None, time.time() - context.now, load_s))
            language, sentences = request.language, self.sentences
            if asked := context.tool_question:
                reply = sentences.text(language, "outside.ask", **asdict(asked))
            outbox = await self._outbox(request, context, reply)
            if asked:
                question = question_of(request.message.sender_id, asked)
                parts = sentences.ask(language, outbox.parts, question, RUN, DONT_RUN)
                outbox = replace(outbox, parts=parts)
            for change in self.finishes:
                outbox = await change(request, outbox)
            return outbox

    async def _run_agreed(
        self, request: Request, context: AgentContext, assistant: Assistant
    ) -> bool:
        """Run the tool that the person agreed to; return False if there is nothing to answer."""
        nonce, update_id = request.last.agreed, request.last.update_id
        begun = await self.questions.begin(context.conversation, nonce, update_id)
        if begun is None:
            log.info("agreed tool not run")
            return False
        about, which = begun
        _, asked = asked_in(about)
        call = ToolCall(f"call_{nonce}", asked.name, asked.arguments)
        action = Action((call,))
        if which == "first":
            context.is_agreed = True
            try:
                step = await assistant.run_tools(action, context)
            finally:
                context.is_agreed = False
        else:
            log.warning("result of an agreed tool unknown", server=asked.server)
            now = time.time()  # it may have run, so it counts as a call
            result = ToolResult(call.id, _UNKNOWN, failed=True, began_at=now, ended_at=now)
            step = CompletedStep(action, (result,))
        context.completed_steps.append(step)
        return True

    async def _outbox(self, request: Request, context: AgentContext, text: str) -> Outbox:
        """Return the reply: the text with its files, what stands below it, then the questions.

        Tools ask first, then features, then the cards of learned facts. Only if nobody else asks,
        an old fact that was used is asked about.
        """
        language, is_reply = request.language, context.tool_question is None
        say, words = partial(self.sentences.say, language), partial(self.sentences.text, language)
        below = [await note(request, context, text) for note in self.notes]
        if not is_reply:  # a question before a tool runs is our text: it claims nothing
            below = [replace(each, correction=None, codes=()) for each in below]
        asked = tuple(part for each in below for part in each.questions)

        parts, is_whole = await reply_parts(request.run.before + text, words)
        is_alone = bool(asked) and not request.run.before and text.strip() == QUESTION_ALONE
        if is_alone:
            parts, text, asked = asked, asked[0].text, ()
        not_sent = partial(say, "answer.not_sent")
        attached = [Part("", file=f, instead=not_sent(name=f.name)[0].text) for f in context.files]
        if attached:
            parts = with_attached(parts, attached, as_caption=is_reply)
        if not parts:
            log.warning("empty answer")
            return Outbox(request.to, say("error.empty_answer"))
        if not is_whole:
            log.warning("answer cut", chars=len(text))
            parts = with_line(parts, *say("error.too_long_answer"))

        writes, learned, aged = await _wanted(context, f"{request.message.text}\n{text}")
        whole = self._with_lines(request, parts, below, writes)
        # A rich message has only the text, so no line and no button may stand below it.
        is_rich = self.sends_rich and is_whole and whole == parts and not request.run.before
        is_rich = is_rich and is_worth_rich(text, parts)

        asked = questions(self.sentences, language, writes) + asked
        is_asking = bool(asked) or is_alone
        if not (is_asking or learned):
            asked, writes = questions(self.sentences, language, aged), [*writes, *aged]
        asked += questions(self.sentences, language, learned, are_cards=True)
        is_corrected = any(each.correction for each in below)
        codes = [code for each in below for code in each.codes if not is_corrected]
        from_id = request.last.message_id or request.last.replied_to
        in_chat = partial(replace, chat_id=request.to.chat_id, topic_id=request.to.topic_id)
        items = [in_chat(e, message_id=e.message_id or from_id) for e in context.work.added]
        return Outbox(
            request.to,
            whole + asked,
            said=said_with(text[:MAX_CHARS], attached),
            # The person may decline: then what the tools did must not teach anything either.
            digest="" if is_asking else _digest(context.completed_steps),
            # The text of a learned fact stays where an erasure finds it.
            writes=to_json([*writes, *(replace(each, text="") for each in learned)]),
            is_untrusted=is_answer_untrusted(context),
            rich_parts=len(parts) if is_rich else 0,
            work=replace(context.work, added=items).encode(),
            used=" ".join((*codes, *context.used[:_MAX_USED])),
        )

    def _with_lines(
        self, request: Request, parts: Parts, below: Sequence[Below], writes: Sequence[ToolWrite]
    ) -> Parts:
        """Return an answer with the lines and the buttons that stand below it."""
        say = partial(self.sentences.say, request.language)
        lines = [part for note in request.run.media_notes for part in render(note)]
        # The steps that read files say themselves what they could not read.
        is_unknown = any(each.unseen and each.kind not in MEDIA for each in request.updates)
        if request.message.unseen and is_unknown:
            lines += say("unsupported.attached")
        lines += confirmations(self.sentences, request.language, writes)
        lines += [part for each in below for part in each.lines]
        lines += [each.correction for each in below if each.correction][-1:]
        if not request.uses_memory:
            lines += say("off.mark")
        for line in lines:
            parts = with_line(parts, line)
        # A line that finds no room is the last part now, and the buttons stand below that.
        row = [button for each in below for button in each.buttons]
        return with_buttons(parts, *row) if row and request.uses_memory else parts


async def _wanted(
    context: AgentContext, said: str
) -> tuple[list[ToolWrite], list[Remember], list[StillTrue]]:
    """Return what tools want written, learned facts to be confirmed, and used facts to ask about.

    While memory is off, that is only what they want forgotten. A write that asks first gets the
    nonce of its buttons here. A learned fact that is to be confirmed has one already. It asks
    about at most one old fact that was used, and only if `said` has a word of that fact.
    """
    wanted: list[ToolWrite] = list(context.writes)
    forgets = [write for write in wanted if isinstance(write, ForgetRecord)]
    if len(forgets) < len(wanted) and await context.chat_history.is_off():
        wanted = [*forgets]
    learned = [each for each in wanted if isinstance(each, Remember) and each.nonce]
    new = (each for each in wanted if not each.nonce)
    writes = [replace(each, nonce=token_urlsafe(12)) if each.asks_first else each for each in new]
    return writes, learned, question_for(wanted, context.used, said)


def _digest(steps: Sequence[CompletedStep]) -> str:
    """Return, for learning, what tools were asked and answered, in at most 2,000 characters."""
    lines = []
    for step in steps:
        for call, result in zip(step.action.calls, step.results, strict=True):
            mark = UNTRUSTED_STEP if result.is_untrusted else ""
            arguments, answer = call.arguments[:_CALL_CHARS], result.text[:_RESULT_CHARS]
            lines.append(f"{mark}{call.name}({arguments}) -> {answer}")
    return "\n".join(lines)[:_DIGEST_CHARS]
