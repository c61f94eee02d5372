"""Requests as typed values; `bodies` reads them from JSON."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bot.model.call import PromptMessage
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
