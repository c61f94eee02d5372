"""Asks before a tool from outside runs, and hears the answer; a turn then runs the tool."""

from collections.abc import Mapping
from dataclasses import replace

import structlog

from bot.commands.bot_command import ButtonHandler
from bot.commands.buttons import message_of, put_press
from bot.commands.consent import NONCE
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part
from bot.telegram.updates import ButtonPress
from memory.behaviors.steps import ToolQuestion
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.tool_runs import ToolRuns
from memory.memory import Memory
from memory.queue.mailbox import Mailbox
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_YES, _NO = "run_tool", "dont_run_tool"


def tool_question(sentences: Sentences, language: str, question: ToolQuestion) -> str:
    """Return the question, as Markdown."""
    return sentences.text(
        language,
        "outside.ask",
        server=question.server,
        tool=question.tool,
        arguments=question.arguments,
    )


def answers(sentences: Sentences, language: str, nonce: str) -> tuple[Button, ...]:
    """Return the two buttons below a question."""
    return (
        Button(sentences.text(language, "buttons.run_tool"), f"{_YES}:{nonce}"),
        Button(sentences.text(language, "buttons.dont_run_tool"), f"{_NO}:{nonce}"),
    )


def buttons(memory: Memory, sentences: Sentences) -> Mapping[str, ButtonHandler]:
    """Return what the two buttons do, by verb."""
    handlers = ToolButtons(ToolRuns(memory.store), memory, sentences)
    return {_YES: handlers.agree, _NO: handlers.refuse}


class ToolButtons:
    """Acts on the answers; only the person who asked may give one."""

    def __init__(self, runs: ToolRuns, memory: Memory, sentences: Sentences) -> None:
        self._runs = runs
        self._mailbox: Mailbox = memory.mailbox
        self._confirmations = memory.confirmations
        self._sentences = sentences

    async def agree(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Put the answer into the mailbox like a message; its turn runs the tool."""
        question = await self._checked(pressed, here, nonce)
        language = pressed.sender.language
        yes = self._sentences.text(language, "buttons.run_tool")
        agreed = replace(message_of(pressed), kind="text", text=yes, agreed=nonce)
        if not await put_press(self._mailbox, here, agreed):
            return ()
        log.info("tool agreed to", server=question.server)
        return self._shown(language, "outside.agreed", question)

    async def refuse(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Forget the question."""
        question = await self._checked(pressed, here, nonce)
        await self._confirmations.cancel(here, nonce, pressed.sender.id)
        return self._shown(pressed.sender.language, "outside.refused", question)

    async def _checked(self, pressed: ButtonPress, here: Scope, nonce: str) -> ToolQuestion:
        if not NONCE.fullmatch(nonce):
            raise NotConfirmed("unknown")
        return await self._runs.check(here, nonce, pressed.sender.id)

    def _shown(self, language: str, key: str, question: ToolQuestion) -> tuple[Part, ...]:
        return self._sentences.say(language, key, server=question.server, tool=question.tool)
