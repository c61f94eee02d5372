"""Joins the events of a streamed response, tolerant of servers that leave out what they may.

Pure: events in, one `ModelReply` out. Text is taken from its pieces, calls and encrypted thoughts
from their entries once these are done; what never came so is taken from the last event, which
repeats the whole response.
"""

from collections.abc import Mapping, Sequence

from bot.model.call import ModelReply, ReasoningItem, Usage
from bot.model.model_errors import CONTENT_FILTER, AnswerIncomplete, ContentRefused
from bot.model.wire import (
    MAX_CALL_CHARS,
    MAX_CALLS,
    BoundedText,
    count_of,
    joined,
    list_of,
    new_call_id,
    object_of,
    reported_error,
    text_of,
)
from memory.behaviors.steps import ToolCall

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_END = ("response.completed", "response.incomplete", "response.failed")
_KEPT = ("type", "id", "summary", "encrypted_content")
"""Fields of a reasoning item that go back; servers refuse some of the others, as `status`."""
_BETWEEN_MESSAGES = "\n\n"


class ResponseAccumulator:
    """Takes events one after another; bounds are those of `ReplyAccumulator`.

    `origin` names the server and the model that can read the reasoning items.
    """

    def __init__(self, max_chars: int | None = None, origin: str = "") -> None:
        self._origin = origin
        self._text = BoundedText(max_chars)
        self._speaking: object = None
        self._entries: list[Mapping[str, object]] = []
        self._calls = 0
        self._call_chars_left = MAX_CALL_CHARS
        self._finish_reason = ""
        self._usage = Usage()
        self.is_empty = True
        """Whether no event has come yet."""
        self.is_over = False
        """Whether nothing more is to be read."""

    @property
    def is_complete(self) -> bool:
        """Whether the server said that the answer is finished."""
        return bool(self._finish_reason)

    def add(self, event: object) -> None:
        """Take one event as it stands in JSON; raise `AnswerIncomplete` for what is none.

        Raise `ContentRefused` when the event says that a filter declined the text.
        """
        self.is_empty = False
        given = object_of(event)
        kind = given.get("type")
        if kind in _TEXT:
            self._add_text(given.get("output_index"), text_of(given.get("delta")))
        elif kind == "response.output_item.done":
            self._add_entry(object_of(given.get("item")))
        elif kind in _END:
            self._add_end(object_of(given.get("response")))
        elif kind == "error" or given.get("error"):
            raise reported_error(given)

    def reply(self) -> ModelReply:
        """Return the answer so far; it is whole only if `is_complete`."""
        calls: list[ToolCall] = []
        thoughts: list[tuple[int, Mapping[str, object]]] = []
        for entry in self._entries:
            if entry.get("type") == "function_call" and entry.get("name"):
                calls.append(_call(entry))
            elif entry.get("type") == "reasoning" and entry.get("encrypted_content"):
                thoughts.append((len(calls), entry))
        return ModelReply(
            self._text.joined(),
            tuple(calls),
            self._finish_reason,
            self._usage,
            self._kept(thoughts),
        )

    def _add_text(self, place: object, piece: str) -> None:
        if self._speaking not in (None, place) and piece:
            piece = _BETWEEN_MESSAGES + piece
        self._speaking = place
        self._text.add(piece)
        if self._text.is_full:
            self._end("length")

    def _add_entry(self, entry: Mapping[str, object]) -> None:
        if entry.get("type") == "function_call":
            names = ("call_id", "name", "arguments")
            self._call_chars_left -= sum(len(text_of(entry.get(name))) for name in names)
            if self._call_chars_left < 0:
                raise AnswerIncomplete("too long calls")
            if self._calls == MAX_CALLS:
                self._end("tool_calls")
                return
            self._calls += 1
        if len(self._entries) < 2 * MAX_CALLS:
            self._entries.append(entry)

    def _add_end(self, response: Mapping[str, object]) -> None:
        if error := object_of(response.get("error")):
            raise reported_error({"error": error})
        self._usage = usage_of_response(object_of(response.get("usage")))
        output = [object_of(entry) for entry in list_of(response.get("output"))]
        if not self._entries:
            for entry in output[: 2 * MAX_CALLS]:
                self._add_entry(entry)
        if self._speaking is None:
            self._text.add(text_of_output(output))
        self._end(finish_reason_of(response, has_calls=self._calls > 0))

    def _end(self, finish_reason: str) -> None:
        self.is_over = True
        self._finish_reason = finish_reason

    def _kept(
        self, thoughts: Sequence[tuple[int, Mapping[str, object]]]
    ) -> tuple[ReasoningItem, ...]:
        tokens = self._usage.reasoning_tokens // max(1, len(thoughts))
        return tuple(
            ReasoningItem(self._origin, at, _sendable(entry), tokens) for at, entry in thoughts
        )


def usage_of_response(usage: Mapping[str, object]) -> Usage:
    """Read what the server bills, as far as it says."""
    read = object_of(usage.get("input_tokens_details"))
    written = object_of(usage.get("output_tokens_details"))
    return Usage(
        prompt_tokens=count_of(usage.get("input_tokens")),
        completion_tokens=count_of(usage.get("output_tokens")),
        cached_tokens=count_of(read.get("cached_tokens")),
        reasoning_tokens=count_of(written.get("reasoning_tokens")),
    )


def finish_reason_of(response: Mapping[str, object], *, has_calls: bool) -> str:
    """Return why a response ended, in the words of chat completions.

    Raise `ContentRefused` when a filter ended it, `AnswerIncomplete` when it is not finished.
    """
    reason = text_of(object_of(response.get("incomplete_details")).get("reason"))
    if reason == CONTENT_FILTER:
        raise ContentRefused
    match response.get("status"):
        case "completed":
            return "tool_calls" if has_calls else "stop"
        case "incomplete":
            return "length"
        case _:
            raise AnswerIncomplete("not finished")


def text_of_output(output: Sequence[Mapping[str, object]]) -> str:
    """Return what the messages of a response say, refusals included."""
    said = [
        joined([_part(part) for part in map(object_of, list_of(entry.get("content")))])
        for entry in output
        if entry.get("type") == "message"
    ]
    return _BETWEEN_MESSAGES.join(filter(None, said))


def _sendable(thoughts: Mapping[str, object]) -> Mapping[str, object]:
    kept = {name: thoughts[name] for name in _KEPT if thoughts.get(name) is not None}
    return {"summary": [], **kept}


def _part(part: Mapping[str, object]) -> str:
    return text_of(part.get("text")) or text_of(part.get("refusal"))


def _call(entry: Mapping[str, object]) -> ToolCall:
    call_id = text_of(entry.get("call_id")) or new_call_id()
    return ToolCall(call_id, text_of(entry["name"]), joined([text_of(entry.get("arguments"))]))
