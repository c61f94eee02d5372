"""What the two APIs of model servers have in common: parts of requests, and reading of answers.

`CHAT` and `RESPONSES` are in `dialects`. A request has optional parts, each with a name and some
with a second best form. So `request_forms` can leave out what a server refuses.

The SDK would cut a body into events too, but it makes objects of each, which took half of a turn's
CPU. All input is bounded: the body, one event, the number of calls and their text. JSON may lack
fields.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Literal, TypeAlias

from bot.model.call import ModelReply, PromptMessage, Usage
from bot.model.model_errors import AnswerIncomplete, ContentRefused, ModelError, NotAModel
from bot.reply.parts import well_formed
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.text.internal_model import AnswerShape

MAX_CALLS = 32  # tool calls of one answer; we do not read the calls beyond that
MAX_CALL_CHARS = 200_000  # of all calls of one answer, names and ids included
_MAX_ENTRIES = 1_000  # of a server's list; each takes our code several microseconds
MAX_EVENT_BYTES = 4 * 2**20
"""The last event of a response repeats all of it: text, calls and encrypted reasoning."""
_DONE = b"[DONE]"

_FILTERED = re.compile(
    r"content[_ ]?filter|content[_ ]?(management )?policy|responsibleaipolicy"
    r"|data_inspection_failed|requires moderation|(input|prompt) was flagged"
    r"|moderation_blocked|our safety system",
    re.IGNORECASE,
)
"""What Azure, OpenAI, LiteLLM, OpenRouter and DashScope say of a filtered prompt."""
TOO_LONG = re.compile(r"context[_ ](length|size|window)", re.IGNORECASE)
"""The code of api.openai.com, and what servers say that have no code for it."""
_BLIND = re.compile(
    r"(not|n't|cannot|no endpoints found that) (currently )?support (\w+ )?"
    r"(image|vision|multimodal)"
    r"|image(_url| inputs?)?s? (is|are) (not|only) supported|not a multimodal model"
    r"|at most 0 image|missing data required for image|unknown variant .?image_url"
    r"|(does not|cannot) (accept|take|process|see) images?|only text (content|input)",
    re.IGNORECASE,
)
"""What OpenAI, OpenRouter, llama.cpp, vLLM, Ollama and DeepSeek say if a model has no eyes.

A text about one broken picture does not match.
"""
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{1,49}")
"""An identifier; anything else might be a sentence that quotes a person."""


@dataclass(slots=True, repr=False, eq=False)
class EventReader:
    """Takes a body in pieces as they arrive; `is_done` is set by the event that ends the stream."""

    bytes_left: int
    is_done: bool = False
    _begun: list[bytes] = field(default_factory=list)
    _begun_bytes: int = 0
    _data: list[bytes] = field(default_factory=list)
    _data_bytes: int = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that this piece completes, up to the end of the stream.

        Raise `NotAModel` when the body or an event is too long.
        """
        self.bytes_left -= len(piece)
        self._begun.append(piece)
        self._begun_bytes += len(piece)
        lines: list[bytes] = []
        if b"\n" in piece:  # a long line in many pieces is joined once, at its end
            lines = b"".join(self._begun).splitlines(keepends=True)
            # A CR at the end may be the first half of a line's end.
            self._begun = [lines.pop()] if not lines[-1].endswith(b"\n") else []
            self._begun_bytes = sum(map(len, self._begun))

        for ended_line in lines:
            if self.is_done:
                return
            line = ended_line.rstrip(b"\r\n")
            if line:
                name, _, value = line.partition(b":")
                if name == b"data":
                    self._data.append(value.removeprefix(b" "))
                    self._data_bytes += len(line)
            elif self._data:  # an empty line ends an event
                data = b"\n".join(self._data)
                self._data.clear()
                self._data_bytes = 0
                self.is_done = data.startswith(_DONE)
                if not self.is_done:
                    yield data
        if self.bytes_left < 0:
            raise NotAModel("the body is too long")
        if self._begun_bytes + self._data_bytes > MAX_EVENT_BYTES:
            raise NotAModel("an event is too long")


def joined(pieces: Sequence[str]) -> str:
    """Join text. Two halves of an emoji from two pieces become one character."""
    return well_formed("".join(pieces))


def object_of(given: object) -> Mapping[str, object]:
    """Return a JSON object, an empty one for null; raise `AnswerIncomplete` for anything else."""
    if given is None or isinstance(given, dict):
        return given or {}
    raise AnswerIncomplete("a part of the answer has another type")


def list_of(given: object) -> Sequence[object]:
    """Return a JSON list up to a bound, an empty one for null; else raise `AnswerIncomplete`."""
    if given is None or isinstance(given, list):
        return (given or ())[:_MAX_ENTRIES]
    raise AnswerIncomplete("a part of the answer has another type")


def text_of(given: object) -> str:
    """Return a string; "" for anything else, because some servers send null or a number."""
    return given if isinstance(given, str) else ""


def count_of(given: object) -> int:
    """Return a whole number from 0 to a billion; 0 for anything else."""
    return given if isinstance(given, int) and 0 <= given <= 10**9 else 0


def code_of(body: object) -> str:
    """Return the identifier of an error from its body or the body's `error`; "" if it has none."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    if not isinstance(body, dict):
        return ""
    named = (body.get(name) for name in ("code", "type"))
    return next((each for each in named if isinstance(each, str) and _CODE.fullmatch(each)), "")


def is_filtered(code: str, objection: str = "") -> bool:
    """Tell whether a content filter declined a text, by the server's code or its text."""
    return bool(_FILTERED.search(code) or _FILTERED.search(objection))


def is_blind(objection: str) -> bool:
    """Tell whether the server says that the model takes no pictures at all."""
    return bool(_BLIND.search(objection))


def reported_error(event: Mapping[str, object]) -> ModelError:
    """Return our error for one that a stream reports. It quotes nothing of the server's text."""
    code = code_of(event)
    if is_filtered(code, str(event.get("error") or event.get("message"))):
        return ContentRefused(code=code)
    return AnswerIncomplete("the server reported an error", code=code)


def tool_call(call_id: str, name: str, arguments: Sequence[str]) -> ToolCall:
    """Return a tool call, with an id of ours if the server gave none."""
    return ToolCall(joined([call_id]) or f"call_{token_hex(8)}", joined([name]), joined(arguments))


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]

Options: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Alternatives by name, the best first, each with the fields that it adds to a request."""

PROMPT = "prompt"  # the name of the option that every server takes: it is never left out

_LESS: Mapping[Effort | None, Effort] = {
    None: "low",
    "max": "medium",
    "xhigh": "medium",
    "high": "low",
    "medium": "low",
}


def less_effort(effort: Effort | None) -> Effort:
    """Return less effort, for an answer whose tokens all went into reasoning."""
    return _LESS.get(effort, "none")


def usage_of(given: object, prompt: str, completion: str) -> Usage:
    """Read what was billed; `prompt` and `completion` are how the API's field names begin."""
    usage = object_of(given)
    return Usage(
        count_of(usage.get(f"{prompt}_tokens")),
        count_of(usage.get(f"{completion}_tokens")),
        count_of(object_of(usage.get(f"{prompt}_tokens_details")).get("cached_tokens")),
        count_of(object_of(usage.get(f"{completion}_tokens_details")).get("reasoning_tokens")),
    )


@dataclass(slots=True, repr=False, eq=False)
class Accumulator:
    """Joins the events of one answer, or reads a whole one; each API has its own subclass.

    An answer counts as complete, and nothing more is read, when its text exceeds `max_chars` or
    when it has more than `MAX_CALLS` tool calls. `origin` names the server and the model that can
    read the reasoning items.
    """

    max_chars: int | None = None
    origin: str = ""
    finish_reason: str = ""  # as soon as the server said that the answer is finished
    usage: Usage = field(default_factory=Usage)
    is_empty: bool = True  # no event has come yet
    is_over: bool = False  # nothing more has to be read
    _pieces: list[str] = field(default_factory=list)
    _chars: int = 0
    _call_chars: int = 0

    def add(self, event: object) -> None:
        """Take one event as parsed JSON.

        Raise `AnswerIncomplete` for one that cannot be read or that reports an error, and
        `ContentRefused` for one that says that a filter declined the text.
        """
        raise NotImplementedError

    def add_whole(self, body: Mapping[str, object]) -> None:
        """Take an answer that was not streamed; raise what `add` raises, or `KeyError`.

        Our code reads it, not a person, so raise `ContentRefused` if the model declines.
        """
        raise NotImplementedError

    def reply(self) -> ModelReply:
        """Return the answer so far; it is whole only if it has a `finish_reason`."""
        raise NotImplementedError

    def _add_text(self, piece: str) -> None:
        if self.max_chars is not None and self._chars + len(piece) > self.max_chars:
            piece = piece[: self.max_chars - self._chars]
            self._end("length")
        self._chars += len(piece)
        self._pieces.append(piece)

    def _end(self, finish_reason: str) -> None:
        self.is_over, self.finish_reason = True, finish_reason

    def _count_call(self, *pieces: str) -> None:
        self._call_chars += sum(map(len, pieces))
        if self._call_chars > MAX_CALL_CHARS:
            raise AnswerIncomplete("the tool calls are too long")


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One API: the path of its requests, how their parts are written, how answers are read."""

    name: Literal["chat", "Responses"]
    path: str
    fixed: Mapping[str, Any]  # of every request
    limits: tuple[str, ...]  # names of the token limit of an answer, reasoning included; best first
    prompt: Callable[[Sequence[PromptMessage]], Mapping[str, Any]]  # without reasoning items
    streaming: Callable[[Sequence[PromptMessage], str], Options]
    """The options of a streamed request, with the reasoning items that come from this origin."""
    tool: Callable[[ToolDefinition], Mapping[str, Any]]
    effort: Callable[[Effort], Mapping[str, Any]]
    verbosity: Callable[[Verbosity], Mapping[str, Any]]
    json: Callable[[AnswerShape | None], Mapping[str, Any]]
    """The fields that ask for JSON of a strict shape, or for any JSON object (None)."""
    accumulator: type[Accumulator]

    def max_tokens(self, count: int) -> Options:
        """Return the token limit of an answer."""
        return {name: {name: count} for name in self.limits}
