"""A tool from outside asks before it runs: the question, its two buttons, and the one run.

A yes goes into the mailbox like a message, and its turn runs the tool.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import astuple, dataclass, replace

import orjson
import structlog

from bot.commands.bot_command import ButtonHandler
from bot.commands.buttons import message_of, put_press
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress
from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, CompletedStep, ToolCall, ToolQuestion, ToolResult
from memory.erasure.questions import NotConfirmed, Question, Questions
from memory.memory import Memory
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

RunTools = Callable[[Action, AgentContext], Awaitable[CompletedStep]]

_YES, _NO = "run_tool", "dont_run_tool"
_VALID_S = 600
_UNKNOWN = (
    "Error: the tool was started and the bot stopped before its result came, so it is not known "
    "whether it did its work. Tell the person, and do not call it again by yourself."
)


def question_text(sentences: Sentences, language: str, asked: ToolQuestion) -> str:
    """Return the question, as Markdown."""
    shown = {"server": asked.server, "tool": asked.tool, "arguments": asked.arguments}
    return sentences.text(language, "outside.ask", **shown)


def with_question(
    sentences: Sentences, language: str, parts: tuple[Part, ...], asker: int, asked: ToolQuestion
) -> tuple[Part, ...]:
    """Return the parts with the two buttons; `asker` may agree within ten minutes."""
    about = orjson.dumps([time.time() + _VALID_S, *astuple(asked)]).decode()
    return sentences.ask(language, parts, Question("tool", asker, about), _YES, _NO)


class ToolButtons:
    """Acts on the answers; only the person who asked may give one."""

    def __init__(self, memory: Memory, sentences: Sentences) -> None:
        self._questions = memory.questions
        self._mailbox = memory.mailbox
        self._sentences = sentences

    @property
    def handlers(self) -> Mapping[str, ButtonHandler]:
        """What the two buttons do, by verb."""
        return {_YES: self.agree, _NO: self.refuse}

    async def agree(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Put the answer into the mailbox like a message; its turn runs the tool."""
        asked, language = await self._checked(pressed, here, nonce), pressed.sender.language
        yes = self._sentences.text(language, "buttons.run_tool")
        agreed = replace(message_of(pressed), kind="text", text=yes, agreed=nonce)
        if not await put_press(self._mailbox, here, agreed):
            return ()
        log.info("tool agreed to", server=asked.server)
        return self._shown(language, "outside.agreed", asked)

    async def refuse(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Withdraw the question."""
        asked = await self._checked(pressed, here, nonce)
        await self._questions.withdraw(here, nonce, pressed.sender.id)
        return self._shown(pressed.sender.language, "outside.refused", asked)

    async def _checked(self, pressed: ButtonPress, here: Scope, nonce: str) -> ToolQuestion:
        about = await self._questions.check(here, nonce, "tool", pressed.sender.id)
        if not about or orjson.loads(about)[0] <= time.time():
            raise NotConfirmed("unknown")
        return _asked(about)

    def _shown(self, language: str, key: str, asked: ToolQuestion) -> tuple[Part, ...]:
        return self._sentences.say(language, key, server=asked.server, tool=asked.tool)


@dataclass(frozen=True, slots=True, eq=False)
class AgreedRun:
    """Brings the result of an agreed call into the context, for the model to answer."""

    questions: Questions
    run_tools: RunTools

    async def bring(self, request: Request, context: AgentContext) -> bool:
        """Run the tool; return False if there is nothing to answer.

        Raise `LeaseLost` or `StoreError`.
        """
        nonce, update_id = request.last.agreed, request.last.update_id
        begun = await self.questions.begin(context.conversation, nonce, update_id)
        if begun is None:
            log.info("agreed tool not run")
            return False
        about, which = begun
        asked = _asked(about)
        call = ToolCall(f"call_{nonce}", asked.name, asked.arguments)
        action = Action((call,))
        if which == "first":
            context.is_agreed = True
            try:
                step = await self.run_tools(action, context)
            finally:
                context.is_agreed = False
        else:
            log.warning("result of an agreed tool unknown", server=asked.server)
            step = CompletedStep(action, (ToolResult(call.id, _UNKNOWN, failed=True),))
        context.completed_steps.append(step)
        return True


def _asked(about: str) -> ToolQuestion:
    _, *asked = orjson.loads(about)
    return ToolQuestion(*asked)
