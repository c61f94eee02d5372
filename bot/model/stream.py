"""Joins the chunks of a chat completion, tolerant of servers that leave out what they may.

Pure: chunks in, one `ModelReply` out. Written against the table of quirks that servers show: empty
`choices`, no `index`, several calls under one index, arguments in pieces, usage last or never.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.model.call import ModelReply, Usage
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


@dataclass(slots=True)
class _PartialCall:
    index: object
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ReplyAccumulator:
    """Takes chunks one after another.

    Text beyond `max_chars` and calls beyond 32 are not read: the answer counts as complete then,
    the text as cut.
    """

    def __init__(self, max_chars: int | None = None) -> None:
        self._text = BoundedText(max_chars)
        self._call_chars_left = MAX_CALL_CHARS
        self._calls: list[_PartialCall] = []
        self._finish_reason = ""
        self._usage = Usage()
        self.is_empty = True
        """Whether no chunk has come yet."""
        self.is_over = False
        """Whether nothing more is to be read."""

    @property
    def is_complete(self) -> bool:
        """Whether the server said that the answer is finished."""
        return bool(self._finish_reason)

    def add(self, chunk: object) -> None:
        """Take one chunk as it stands in JSON; raise `AnswerIncomplete` for what is none.

        Raise `ContentRefused` when the chunk says that a filter declined the text.
        """
        self.is_empty = False
        given = object_of(chunk)
        if given.get("error"):
            raise reported_error(given)
        if usage := object_of(given.get("usage")):
            self._usage = usage_of(usage)
        for choice in map(object_of, list_of(given.get("choices"))):
            delta = object_of(choice.get("delta"))
            self._text.add(text_of(delta.get("content")))
            for call in map(object_of, list_of(delta.get("tool_calls"))):
                self._add_call(call)
            if self._text.is_full:
                self._end("length")
            if self.is_over:
                return
            self._finish_reason = text_of(choice.get("finish_reason")) or self._finish_reason
            if self._finish_reason == CONTENT_FILTER:
                raise ContentRefused

    def reply(self) -> ModelReply:
        """Return the answer so far; it is whole only if `is_complete`."""
        calls = tuple(
            ToolCall(call.id or new_call_id(), call.name, joined(call.arguments))
            for call in self._calls
            if call.name
        )
        return ModelReply(self._text.joined(), calls, self._finish_reason, self._usage)

    def _end(self, finish_reason: str) -> None:
        self.is_over = True
        self._finish_reason = finish_reason

    def _add_call(self, piece: Mapping[str, object]) -> None:
        if self.is_over:
            return
        function = object_of(piece.get("function"))
        call_id, name = text_of(piece.get("id")), text_of(function.get("name"))
        arguments = text_of(function.get("arguments"))
        self._call_chars_left -= len(call_id) + len(name) + len(arguments)
        if self._call_chars_left < 0:
            raise AnswerIncomplete("too long calls")
        call = self._call_of(piece.get("index"), call_id, name)
        if call is None:
            self._end("tool_calls")
            return
        call.id = call.id or call_id
        call.name = call.name or name
        if arguments:
            call.arguments.append(arguments)

    def _call_of(self, index: object, call_id: str, name: str) -> _PartialCall | None:
        """Return the call that a piece belongs to; None for a new one beyond 32.

        A new id or name is a new call at any index.
        Some servers make up a new id for each piece; only the first piece names the tool.
        """
        same_index = [call for call in self._calls if call.index == index]
        if call_id and (name or not same_index):
            known = [call for call in same_index if call.id == call_id]
        elif name:
            known = [call for call in same_index if not call.name]
        else:
            known = same_index or self._calls
        if known:
            return known[-1]
        if len(self._calls) == MAX_CALLS:
            return None
        self._calls.append(_PartialCall(index))
        return self._calls[-1]


def usage_of(usage: Mapping[str, object]) -> Usage:
    """Read what the server bills, as far as it says."""
    read = object_of(usage.get("prompt_tokens_details"))
    written = object_of(usage.get("completion_tokens_details"))
    return Usage(
        prompt_tokens=count_of(usage.get("prompt_tokens")),
        completion_tokens=count_of(usage.get("completion_tokens")),
        cached_tokens=count_of(read.get("cached_tokens")),
        reasoning_tokens=count_of(written.get("reasoning_tokens")),
    )
