"""Joins the chunks of a streamed answer, tolerant of servers that leave out what they may.

Pure: chunks in, one `ModelReply` out. Written against the table of quirks that servers show: empty
`choices`, no `index`, several calls under one index, arguments in pieces, usage last or never.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex

from openai.types.completion_usage import CompletionUsage

from bot.model.errors import (
    CONTENT_FILTER,
    AnswerIncomplete,
    ContentRefused,
    ModelError,
    code_of,
    is_filtered,
)
from bot.model.values import ModelReply, Usage
from bot.utf16 import well_formed
from memory.steps import ToolCall


@dataclass(slots=True)
class _PartialCall:
    index: object
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ReplyAccumulator:
    """Takes chunks one after another."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: list[_PartialCall] = []
        self._finish_reason = ""
        self._usage = Usage()
        self.is_empty = True
        """Whether no chunk has come yet."""

    @property
    def is_complete(self) -> bool:
        """Whether the server said that the answer is finished."""
        return bool(self._finish_reason)

    def add(self, chunk: object) -> None:
        """Take one chunk as it stands in JSON; raise `AnswerIncomplete` for what is none.

        Raise `ContentRefused` when the chunk says that a filter declined the text.
        """
        self.is_empty = False
        given = _object(chunk)
        if given.get("error"):
            raise _reported(given)
        if usage := _object(given.get("usage")):
            self._usage = usage_of(CompletionUsage.construct(None, **usage))
        for choice in map(_object, _list(given.get("choices"))):
            delta = _object(choice.get("delta"))
            self._text.append(_text(delta.get("content")))
            for call in map(_object, _list(delta.get("tool_calls"))):
                self._add_call(call)
            self._finish_reason = _text(choice.get("finish_reason")) or self._finish_reason
            if self._finish_reason == CONTENT_FILTER:
                raise ContentRefused

    def reply(self) -> ModelReply:
        """Return the answer so far; it is whole only if `is_complete`."""
        calls = tuple(
            ToolCall(call.id or new_call_id(), call.name, _joined(call.arguments))
            for call in self._calls
            if call.name
        )
        return ModelReply(_joined(self._text), calls, self._finish_reason, self._usage)

    def _add_call(self, piece: Mapping[str, object]) -> None:
        function = _object(piece.get("function"))
        call_id, name = _text(piece.get("id")), _text(function.get("name"))
        call = self._call_of(piece.get("index"), call_id, name)
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments.append(_text(function.get("arguments")))

    def _call_of(self, index: object, call_id: str, name: str) -> _PartialCall:
        """Return the call that a piece belongs to; a new id or name is a new call at any index.

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
        self._calls.append(_PartialCall(index))
        return self._calls[-1]


def _reported(chunk: Mapping[str, object]) -> ModelError:
    """Return what an error inside of a stream means; its words may quote a person's."""
    code = code_of(chunk)
    if is_filtered(code, str(chunk["error"])):
        return ContentRefused(code=code)
    return AnswerIncomplete("the server reported an error", code=code)


def _object(given: object) -> Mapping[str, object]:
    """Return a JSON object, an empty one for null; raise `AnswerIncomplete` for anything else."""
    if given is None:
        return {}
    if isinstance(given, dict):
        return given
    raise AnswerIncomplete("no chunk")


def _list(given: object) -> Sequence[object]:
    """Return a JSON list, an empty one for null; raise `AnswerIncomplete` for anything else."""
    if given is None:
        return ()
    if isinstance(given, list):
        return given
    raise AnswerIncomplete("no chunk")


def _text(piece: object) -> str:
    """Return a piece of text, nothing for what some servers send in its place."""
    return piece if isinstance(piece, str) else ""


def _joined(pieces: Sequence[str]) -> str:
    """Join text; half an emoji at the end of a piece is whole again with the other half."""
    return well_formed("".join(pieces))


def usage_of(usage: CompletionUsage) -> Usage:
    """Read what the server bills, as far as it says."""
    read, written = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        prompt_tokens=usage.prompt_tokens or 0,
        completion_tokens=usage.completion_tokens or 0,
        cached_tokens=(read.cached_tokens or 0) if read else 0,
        reasoning_tokens=(written.reasoning_tokens or 0) if written else 0,
    )


def new_call_id() -> str:
    """Return an id for a call whose server gave none."""
    return f"call_{token_hex(8)}"
