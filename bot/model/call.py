"""What goes into a call of a model, and what comes back.

Nothing here knows the wire format or an SDK.

The observer of an unfinished answer is passed on beside the calls, as the payer of a call is: no
layer between a turn and its model has to know of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.message import Picture


@dataclass(frozen=True, slots=True)
class ReasoningItem:
    """A model's encrypted reasoning of one step, for the next request of the same turn only.

    It is never stored and never logged. `origin` names the server and the model that can read it.
    `before_call` is the position of the tool call that follows it. `tokens` is its size.
    """

    origin: str
    before_call: int
    body: Mapping[str, object] = field(repr=False)
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt. Only the assistant calls tools; a tool message answers one call.

    Only a user's message has pictures.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    reasoning: tuple[ReasoningItem, ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class CallLabels:
    """Hashes by which a server tells conversations and people apart; an empty one is not sent."""

    conversation: str = ""
    person: str = ""


NO_LABELS = CallLabels()


@dataclass(frozen=True, slots=True)
class Usage:
    """What the server billed; zeros if it does not say.

    `cached_tokens` are part of `prompt_tokens`; `reasoning_tokens` are part of `completion_tokens`.
    `heard_s` are seconds of sound that were written down, `spoken_chars` characters that were
    spoken, `drawn_images` those that were drawn.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    heard_s: int = 0
    spoken_chars: int = 0
    drawn_images: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of two requests."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.heard_s + other.heard_s,
            self.spoken_chars + other.spoken_chars,
            self.drawn_images + other.drawn_images,
        )


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One complete answer: the server gave a finish reason, so nothing is missing.

    `usage` covers all requests that the answer took. `is_blind`: the model takes no pictures, so it
    answered without those of the prompt.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: Usage = Usage()
    reasoning: tuple[ReasoningItem, ...] = ()
    is_blind: bool = False


class ChatModel(Protocol):
    """Answers a prompt, possibly by asking for tools."""

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,
    ) -> ModelReply:
        """Return one complete answer; raise `ModelError` if the model gives none."""
        ...


SoFar: TypeAlias = Callable[[], ModelReply]
"""Returns an answer as far as it has come. Equal for all events of one request to a model."""
LiveObserver: TypeAlias = Callable[[SoFar], None]
"""Called at each event of a stream; returns at once and changes nothing."""

_observer: ContextVar[LiveObserver | None] = ContextVar("live_observer", default=None)


@contextmanager
def watching(observer: LiveObserver) -> Iterator[None]:
    """Have the observer called for answers asked for in this block, and in tasks begun in it."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def live_observer() -> LiveObserver | None:
    """Return the observer of this turn, None if nobody watches."""
    return _observer.get()
