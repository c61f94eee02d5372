"""Joins the events of a streamed response, also if the server leaves fields or events out.

Text is taken from its deltas; tool calls and encrypted reasoning are taken from their items once
these are done. What did not arrive that way is taken from the last event, which repeats the whole
response.
"""

from collections.abc import Mapping, Sequence

from bot.model.call import ModelReply, ReasoningItem
from bot.model.dialects import Accumulator, usage_of
from bot.model.model_errors import CONTENT_FILTER, AnswerIncomplete, ContentRefused
from bot.model.wire import (
    MAX_CALLS,
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
_SENT_BACK = ("type", "id", "summary", "encrypted_content")
"""Fields of a reasoning item that we send back; servers refuse some others, such as `status`."""
_BETWEEN_MESSAGES = "\n\n"


class ResponseAccumulator(Accumulator):
    """Joins the events of one response.

    `origin` names the server and the model that can read the reasoning items.
    """

    def __init__(self, max_chars: int | None = None, origin: str = "") -> None:
        super().__init__(max_chars)
        self._origin = origin
        self._current_message: object = None
        self._items: list[Mapping[str, object]] = []
        self._calls = 0

    def add(self, event: object) -> None:
        """Take one event."""
        self.is_empty = False
        given = object_of(event)
        kind = given.get("type")
        if kind in _TEXT:
            self._add_text(given.get("output_index"), text_of(given.get("delta")))
        elif kind == "response.output_item.done":
            self._add_item(object_of(given.get("item")))
        elif kind in _END:
            self._add_end(object_of(given.get("response")))
        elif kind == "error" or given.get("error"):
            raise reported_error(given)

    def reply(self) -> ModelReply:
        """Return the answer so far."""
        calls: list[ToolCall] = []
        reasoning: list[tuple[int, Mapping[str, object]]] = []
        for item in self._items:
            if item.get("type") == "function_call" and item.get("name"):
                calls.append(_call(item))
            elif item.get("type") == "reasoning" and item.get("encrypted_content"):
                reasoning.append((len(calls), item))
        return ModelReply(
            self._text.joined(),
            tuple(calls),
            self._finish_reason,
            self._usage,
            self._reasoning_items(reasoning),
        )

    def _add_text(self, message: object, piece: str) -> None:
        if self._current_message not in (None, message) and piece:
            piece = _BETWEEN_MESSAGES + piece
        self._current_message = message
        self._text.add(piece)
        if self._text.is_full:
            self._end("length")

    def _add_item(self, item: Mapping[str, object]) -> None:
        if item.get("type") == "function_call":
            self._count_call(
                *(text_of(item.get(name)) for name in ("call_id", "name", "arguments"))
            )
            if self._calls == MAX_CALLS:
                self._end("tool_calls")
                return
            self._calls += 1
        if len(self._items) < 2 * MAX_CALLS:
            self._items.append(item)

    def _add_end(self, response: Mapping[str, object]) -> None:
        if error := object_of(response.get("error")):
            raise reported_error({"error": error})
        self._usage = usage_of(response.get("usage"), "input", "output")
        output = [object_of(item) for item in list_of(response.get("output"))]
        if not self._items:
            for item in output[: 2 * MAX_CALLS]:
                self._add_item(item)
        if self._current_message is None:
            self._text.add(text_of_output(output))
        self._end(finish_reason_of(response, has_calls=self._calls > 0))

    def _reasoning_items(
        self, items: Sequence[tuple[int, Mapping[str, object]]]
    ) -> tuple[ReasoningItem, ...]:
        tokens = self._usage.reasoning_tokens // max(1, len(items))
        return tuple(
            ReasoningItem(self._origin, before_call, _sendable(item), tokens)
            for before_call, item in items
        )


def finish_reason_of(response: Mapping[str, object], *, has_calls: bool) -> str:
    """Return the finish reason by which chat completions would call the end of this response.

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
    """Return the text of all messages of a response, refusals included."""
    texts = [
        joined([_part(part) for part in map(object_of, list_of(item.get("content")))])
        for item in output
        if item.get("type") == "message"
    ]
    return _BETWEEN_MESSAGES.join(filter(None, texts))


def _sendable(item: Mapping[str, object]) -> Mapping[str, object]:
    kept = {name: item[name] for name in _SENT_BACK if item.get(name) is not None}
    return {"summary": [], **kept}


def _part(part: Mapping[str, object]) -> str:
    return text_of(part.get("text")) or text_of(part.get("refusal"))


def _call(item: Mapping[str, object]) -> ToolCall:
    call_id = text_of(item.get("call_id")) or new_call_id()
    return ToolCall(call_id, text_of(item["name"]), joined([text_of(item.get("arguments"))]))
