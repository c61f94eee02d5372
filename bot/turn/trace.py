"""What a turn was made of, for whoever looks on: the playground's bench.

A bot in service has no observer, and then nothing here runs. The turn itself knows nothing of it:
what is told stands around the agent's run, not in it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bot.model.model_errors import summary
from bot.prompt.assemble import Prompt
from bot.turn.answer import RunAgent
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import CompletedStep, FinishAction
from memory.memory import Memory
from memory.message import Message
from memory.search.message_search import SearchResult
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """One run of the agent as it stood at its end.

    `prompt` is that of its last model call and `window` what was chosen for it. `began_at` is in
    Unix seconds; `seconds` include recalling. Of a run that failed `failure` says why, as the log
    does, and `reply` is empty.
    """

    conversation: Scope
    words: Message
    window: tuple[Message, ...]
    recalled: tuple[SearchResult, ...]
    prompt: Prompt
    steps: tuple[CompletedStep, ...]
    began_at: float
    seconds: float
    reply: str
    failure: str = ""


class Observer(Protocol):
    """Looks on while a bot works; it returns at once."""

    def serving(self, memory: Memory) -> None:
        """Hear that the bot takes updates in from now on, and what it remembers with."""
        ...

    def answered(self, trace: TurnTrace) -> None:
        """Hear what a turn was made of, before its reply is sent."""
        ...


def watched(
    run: RunAgent, prompt: Callable[[AgentContext], Prompt], observer: Observer
) -> RunAgent:
    """Return `run` with `observer` told of each run's end, whatever the end is.

    `prompt` builds what the model was last sent, once more.
    """

    async def run_and_tell(context: AgentContext) -> FinishAction:
        reply = failure = ""
        try:
            finish = await run(context)
            reply = finish.text
        except BaseException as error:
            failure = summary(error)
            raise
        else:
            return finish
        finally:
            trace = TurnTrace(
                conversation=context.conversation,
                words=context.user_message,
                window=context.window,
                recalled=context.recalled,
                prompt=prompt(context),
                steps=tuple(context.completed_steps),
                began_at=context.now,
                seconds=time.time() - context.now,
                reply=reply,
                failure=failure,
            )
            observer.answered(trace)

    return run_and_tell
