"""Behaviors of an operator that show which hooks are called when.

One logs, one fails, one dies, one has a function for the model. What they hear is written at once
to the file that `HOOK_LOG` names, so that a kill loses nothing.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Never

import orjson
from pydantic import Field

from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.context import AgentContext, CallContext
from memory.behaviors.tool import Arguments, Tool
from memory.message import Message

TOLD = "The hooks send their regards."


def _note(hook: str, call_context: CallContext, *messages: Message, **more: object) -> None:
    said = [(each.role, each.text, each.message_ids) for each in messages]
    where = (os.getpid(), call_context.conversation.tag)
    line = orjson.dumps({"hook": hook, "where": where, "said": said, **more}) + b"\n"
    file = os.open(os.environ["HOOK_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)


class HookLog(AIContextBehavior):
    """Writes every call to the log; counts messages in a state that hooks save and load."""

    name = "hook_log"
    instructions = "Hooks: they are written down."

    def __init__(self) -> None:
        self._heard: Counter[str] = Counter()

    async def on_conversation_created(self, call_context: CallContext) -> None:
        _note("created", call_context)

    async def on_conversation_deleting(self, call_context: CallContext) -> None:
        _note("deleting", call_context)

    async def on_conversation_checkpoint(self, call_context: CallContext) -> None:
        _note("checkpoint", call_context)

    async def on_new_message(self, call_context: CallContext, message: Message) -> None:
        self._heard[call_context.conversation.tag] += 1
        _note("message", call_context, message)

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        _note("invoke", call_context, *new_messages)
        return f"{TOLD} {new_messages[-1].text}"

    async def on_suspend(self, call_context: CallContext) -> None:
        tag = call_context.conversation.tag
        _state_of(tag).write_text(str(self._heard[tag]))
        _note("suspend", call_context, heard=self._heard[tag])

    async def on_resume(self, call_context: CallContext) -> None:
        tag = call_context.conversation.tag
        self._heard[tag] = int(_state_of(tag).read_text()) if _state_of(tag).exists() else 0
        _note("resume", call_context, heard=self._heard[tag])


class Failed(Exception):
    """Raised by the behavior that fails."""


class Broken(AIContextBehavior):
    """Fails in every hook."""

    name = "broken"

    async def on_conversation_created(self, *heard: Any, **_: Any) -> Never:
        raise Failed(*heard)

    on_conversation_deleting = on_conversation_checkpoint = on_conversation_created
    on_new_message = on_model_invoke = on_suspend = on_resume = on_conversation_created


class Guess(Arguments):
    """The guessed number."""

    number: int = Field(description="The number")


async def guess(guess: Guess, context: AgentContext) -> str:
    assert context.call_context
    _note("called", context.call_context, number=guess.number)
    return f"{guess.number} is too low"


class Game(AIContextBehavior):
    """Has a function that the model can call."""

    name = "game"
    functions = (Tool("guess", "Guess the number.", Guess, guess, is_untrusted=False),)


class Clashing(AIContextBehavior):
    """Has a function with the name of one of ours."""

    name = "clashing"
    functions = (Tool("calculate", "Guess the number.", Guess, guess),)


def _state_of(tag: str) -> Path:
    return Path(os.environ["HOOK_LOG"] + f".{tag.replace(':', '_')}")
