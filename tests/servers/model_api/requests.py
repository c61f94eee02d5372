"""Requests and replies as typed values, the port between them, and a scripted model.

`bodies` reads requests from JSON, `answers` writes replies.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol
from uuid import uuid4

import orjson

from bot.model.call import PromptMessage
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition

_MEMORY = re.compile(r"(?<!\s)\s*+<memory>(.*?)</memory>\s*+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request for an answer, over chat completions or over Responses.

    `tool_choice` is `auto`, `none`, `required` or the name of a tool. `max_output_tokens` is 0
    when the client sets no bound, `effort` is empty when it sends none. `raw` is the whole JSON
    body.
    """

    model: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: str = "auto"
    response_format: Literal["text", "json_object", "json_schema"] = "text"
    stream: bool = False
    include_usage: bool = False
    api: Literal["chat", "responses"] = "chat"
    effort: str = ""
    max_output_tokens: int = 0
    raw: Mapping[str, object] = field(default_factory=dict)

    @property
    def last_user_message(self) -> str:
        """The last user message, with everything the client put into it; empty without one."""
        said = [message.content for message in self.messages if message.role == "user"]
        return said[-1] if said else ""

    @property
    def memory(self) -> str:
        """The inside of the last user message's `<memory>` section; empty without one."""
        found = _MEMORY.match(self.last_user_message)
        return found[1].strip() if found else ""

    @property
    def asked(self) -> str:
        """The person's text in the last user message, without its `<memory>` section."""
        return _MEMORY.sub("", self.last_user_message, count=1)

    @property
    def usable_tools(self) -> frozenset[str]:
        """The names of the tools that the answer may call."""
        if self.tool_choice in ("auto", "required"):
            return frozenset(tool.name for tool in self.tools)
        return frozenset({self.tool_choice} - {"none"})


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest:
    """A request for vectors; `dimensions` is 0 if the client does not set them."""

    model: str
    texts: tuple[str, ...]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int = 0
    raw: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """A request for the words of a sound, which came as a file of a form."""

    model: str
    file_name: str
    mime_type: str
    sound: bytes
    raw: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """A request for a spoken text."""

    model: str
    voice: str
    text: str
    response_format: str
    raw: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """A request for a picture."""

    model: str
    prompt: str
    raw: Mapping[str, object] = field(default_factory=dict)


ApiRequest = ChatRequest | EmbeddingsRequest | TranscriptionRequest | SpeechRequest | ImageRequest


def _kind(kind: type) -> Callable[[ApiRequest], bool]:
    """Return what tells requests of this kind from all others."""
    return lambda request: isinstance(request, kind)


is_chat, is_embeddings, is_image = _kind(ChatRequest), _kind(EmbeddingsRequest), _kind(ImageRequest)
is_speech, is_transcription = _kind(SpeechRequest), _kind(TranscriptionRequest)


def is_responses(request: ApiRequest) -> bool:
    """Tell a request over the Responses API from all others."""
    return isinstance(request, ChatRequest) and request.api == "responses"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model; a `refusal` replaces the text.

    An empty `finish_reason` means the usual one: `tool_calls` with calls, else `stop`. `length`,
    `content_filter` and `failed` are expressed in the form of the requested API. `thoughts` are
    billed as reasoning tokens; chat completions do not show them, Responses as a reasoning item.

    The answer begins `delay_s` after the request and not before `gate` is set; a streamed one is
    silent for `thinking_s` after its first event and waits `chunk_delay_s` before each other one.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    delay_s: float = 0
    chunk_delay_s: float = 0
    refusal: str = ""
    gate: asyncio.Event | None = None
    thoughts: str = ""
    thinking_s: float = 0
    cached_tokens: int = 0


class Responder(Protocol):
    """A model that answers requests."""

    async def respond(self, request: ChatRequest) -> Reply:
        """Return the answer to a valid request."""
        ...


def tool_call(name: str, **arguments: object) -> ToolCall:
    """Return a call with an id of its own."""
    return ToolCall(f"call_{uuid4().hex}", name, orjson.dumps(arguments).decode())


class Scripted:
    """Answers by rules, then from a queue, then always the same.

    `log` holds each request with its answer. A rule gives its replies one after the other and
    keeps giving the last; of the rules that fit, the one written first answers. A string is
    a reply with that text.
    """

    def __init__(self, otherwise: Reply | str = "All right.") -> None:
        self.log: list[tuple[ChatRequest, Reply]] = []
        self._otherwise = _reply(otherwise)
        self._rules: list[tuple[Callable[[ChatRequest], bool], deque[Reply]]] = []
        self._queue: deque[Reply] = deque()

    def on(self, when: str | Callable[[ChatRequest], bool], *replies: Reply | str) -> None:
        """Answer so if the person's last text contains `when`, or if `when` returns true."""
        fits = (lambda chat: when in chat.asked) if isinstance(when, str) else when
        self._rules.append((fits, deque(map(_reply, replies))))

    def hold(self, when: str, text: str, *then: Reply | str) -> asyncio.Event:
        """Answer so, but not before the returned event is set; then as `on` does."""
        gate = asyncio.Event()
        self.on(when, Reply(text, gate=gate), *then)
        return gate

    def then(self, *replies: Reply | str) -> None:
        """Queue replies for requests without a matching rule; each is given once, in order."""
        self._queue.extend(map(_reply, replies))

    async def respond(self, request: ChatRequest) -> Reply:
        reply = self._scripted(request)
        self.log.append((request, reply))
        return reply

    def _scripted(self, request: ChatRequest) -> Reply:
        for fits, replies in self._rules:
            if fits(request):
                return replies.popleft() if len(replies) > 1 else replies[0]
        return self._queue.popleft() if self._queue else self._otherwise


def _reply(reply: Reply | str) -> Reply:
    return Reply(reply) if isinstance(reply, str) else reply
