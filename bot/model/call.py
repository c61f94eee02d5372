"""What goes into a call of a model, and what comes back.

Nothing here knows the wire format or an SDK.

Two context variables name the observer of an unfinished answer and the payer of a call. So no layer
between a turn and its model has to know of these.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias

from bot.model.model_errors import ModelUnavailable
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.message import Picture


@dataclass(frozen=True, slots=True)
class ReasoningItem:
    """A model's encrypted reasoning of one step, for the next request of the same turn only.

    It is never stored and never logged.
    """

    origin: str  # names the server and the model that can read it
    before_call: int  # the position of the tool call that follows it
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

    @classmethod
    def of(cls, bot_id: int, tag: str, person: int) -> Self:
        """Return labels for a conversation and a person (0: none); they differ between bots."""

        def hashed(name: str) -> str:
            return sha256(f"{bot_id} {name}".encode()).hexdigest()[:32]

        return cls(hashed(tag), hashed(f"person {person}") if person else "")


@dataclass(frozen=True, slots=True)
class Usage:
    """What the server billed; zeros if it does not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0  # part of `prompt_tokens`
    reasoning_tokens: int = 0  # part of `completion_tokens`
    heard_s: int = 0  # seconds of sound that were written down
    spoken_chars: int = 0
    drawn_images: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of two requests."""
        return Usage(*(getattr(self, n) + getattr(other, n) for n in self.__match_args__))


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One complete answer: the server gave a finish reason, so nothing is missing."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: Usage = Usage()  # of all requests that the answer took
    reasoning: tuple[ReasoningItem, ...] = ()
    is_blind: bool = False  # the model takes no pictures: it answered without those of the prompt


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model that answers people is asked for."""

    messages: Sequence[PromptMessage]
    tools: Sequence[ToolDefinition] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    labels: CallLabels = CallLabels()


class ChatModel(Protocol):
    """Answers a prompt, possibly by asking for tools."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return one complete answer; raise `ModelError` if the model gives none."""


SoFar: TypeAlias = Callable[[], ModelReply]
"""Returns an answer as far as it has come. Equal for all events of one request to a model."""
LiveObserver: TypeAlias = Callable[[SoFar], None]
"""Called at each event of a stream; returns at once and changes nothing."""

live_observer: ContextVar[LiveObserver | None] = ContextVar("live_observer", default=None)
"""The observer of this turn; None if nobody watches."""
payer: ContextVar[tuple[int, str]] = ContextVar("payer", default=(0, ""))
"""The person and the conversation that pay; 0 if no person does."""


@contextmanager
def watching(observer: LiveObserver) -> Iterator[None]:
    """Have the observer called for answers asked for in this block, and in tasks begun in it."""
    token = live_observer.set(observer)
    try:
        yield
    finally:
        live_observer.reset(token)


CallKind: TypeAlias = Literal[
    "answer", "internal", "embedding", "transcription", "speech", "drawing"
]
WhichModel: TypeAlias = Literal["first", "second"]
"""`OPENAI_MODEL` and `OPENAI_MEMORY_MODEL` name the first model, `FALLBACK_MODEL` the second."""

_DATA_URL = re.compile(rb"data:image/[a-z]{1,10};base64,[A-Za-z0-9+/=]*+")
_PICTURE_TOKENS = 1_000
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call, with all requests that it took."""

    kind: CallKind
    model: str
    which: WhichModel
    seconds: float
    usage: Usage = Usage()  # also what a failed call was billed
    error: BaseException | None = None
    is_reply: bool = False  # the answer has no tool calls: the reply of the turn follows at once

    @property
    def outcome(self) -> str:
        """Return "ok", or the name of the error."""
        return "ok" if self.error is None else type(self.error).__name__


ModelObserver: TypeAlias = Callable[[CallReport], None]


@dataclass(slots=True, repr=False, eq=False)
class ObservedCall:
    """A block that makes one call. When it ends, in any way, its client's observers get a report.

    The block adds to `usage` what each request was billed. If a server has read a prompt and its
    answer never came to an end, the prompt is estimated: servers bill it all the same.
    """

    kind: CallKind
    model: str
    client: "Posts"
    unanswered_usage: Usage | None = None  # of a request without an answer; None: of its prompt
    usage: Usage = Usage()
    is_reply: bool = False
    unanswered: list[bytes] = field(default_factory=list)  # read by a server; no end of an answer
    _began: float = field(default_factory=monotonic)
    _outer: Token["ObservedCall | None"] = field(init=False)

    def answered(self) -> None:
        """Note that the newest request was refused, or that its answer has come to its end."""
        del self.unanswered[-1:]

    def __enter__(self) -> Self:
        self._outer = current_call.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        current_call.reset(self._outer)
        for body in self.unanswered:
            text, pictures = _DATA_URL.subn(b"", body)
            tokens = len(text.decode(errors="replace")) // CHARS_PER_TOKEN
            self.usage += self.unanswered_usage or Usage(tokens + pictures * _PICTURE_TOKENS)
        seconds = monotonic() - self._began
        which, usage = self.client.which, self.usage
        report = CallReport(self.kind, self.model, which, seconds, usage, error, self.is_reply)
        for observer in self.client.observers:
            observer(report)


current_call: ContextVar[ObservedCall | None] = ContextVar("call", default=None)
"""The call that the running task makes."""


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Raise `ModelUnavailable` with the code `timeout` when the block takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise ModelUnavailable("no answer in time", code="timeout") from error


@dataclass(frozen=True, slots=True)
class Post:
    """One request to a model server."""

    path: str
    body: dict[str, Any]
    silence_s: float | None = None  # for this request, in place of that of the client
    file: tuple[str, bytes, str] | None = None  # name, content, type; the body becomes form fields


class Posts(Protocol):
    """What asks a model with an API of its own, such as one that hears or draws."""

    which: WhichModel
    observers: Sequence[ModelObserver]  # of each call to its models

    def to(
        self, base_url: str, key: str | None, timeout_s: float, which: WhichModel = "first"
    ) -> "Posts":
        """Return the same for another server."""

    async def post_whole(self, post: Post, max_bytes: int) -> bytes:
        """Return the whole body of an answer; raise `ModelError`."""
