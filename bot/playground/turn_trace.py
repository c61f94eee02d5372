"""What one run of the agent was made of, as the page shows it."""

from dataclasses import dataclass

from bot.prompt.assemble import Prompt
from bot.turn.observers import AgentRan
from memory.behaviors.steps import CompletedStep
from memory.message import Message
from memory.search.message_search import SearchResult
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """One run of the agent as it was at its end.

    `prompt` is that of its last model call. `began_at` is in Unix seconds; `seconds` include
    loading the context. A run that failed has a `failure` and no `reply`.
    """

    conversation: Scope
    user_message: Message
    window: tuple[Message, ...]
    recalled: tuple[SearchResult, ...]
    prompt: Prompt
    steps: tuple[CompletedStep, ...]
    began_at: float
    seconds: float
    reply: str
    failure: str = ""

    @classmethod
    def of(cls, ran: AgentRan, prompt: Prompt) -> "TurnTrace":
        """Return what is shown of a run."""
        context = ran.context
        return cls(
            conversation=context.conversation,
            user_message=context.user_message,
            window=context.window,
            recalled=context.recalled,
            prompt=prompt,
            steps=tuple(context.completed_steps),
            began_at=context.now,
            seconds=ran.seconds,
            reply=ran.reply,
            failure=ran.failure,
        )
