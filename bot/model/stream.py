"""Joins the chunks of a streamed answer, tolerant of servers that leave out what they may.

Pure: chunks in, one `ModelReply` out. Written against the table of quirks that servers show: empty
`choices`, no `index`, several calls under one index, arguments in pieces, usage last or never.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from secrets import token_hex

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall
from openai.types.completion_usage import CompletionUsage

from bot.model.values import ModelReply, Usage
from bot.utf16 import well_formed
from memory.steps import ToolCall


@dataclass(slots=True)
class _PartialCall:
    index: int | None
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

    def add(self, chunk: ChatCompletionChunk) -> None:
        """Take one chunk."""
        self.is_empty = False
        if chunk.usage is not None:
            self._usage = usage_of(chunk.usage)
        for choice in chunk.choices or ():
            delta = choice.delta
            if delta is not None:
                self._text.append(_text(delta.content))
                for call in delta.tool_calls or ():
                    self._add_call(call)
            self._finish_reason = choice.finish_reason or self._finish_reason

    def reply(self) -> ModelReply:
        """Return the answer so far; it is whole only if `is_complete`."""
        calls = tuple(
            ToolCall(call.id or new_call_id(), call.name, _joined(call.arguments))
            for call in self._calls
            if call.name
        )
        return ModelReply(_joined(self._text), calls, self._finish_reason, self._usage)

    def _add_call(self, delta: ChoiceDeltaToolCall) -> None:
        call = self._call_of(delta)
        call.id = call.id or delta.id or ""
        if delta.function is not None:
            call.name = call.name or delta.function.name or ""
            call.arguments.append(_text(delta.function.arguments))

    def _call_of(self, delta: ChoiceDeltaToolCall) -> _PartialCall:
        """Return the call that a piece belongs to; a new id or name is a new call at any index.

        Some servers make up a new id for each piece; only the first piece names the tool.
        """
        same_index = [call for call in self._calls if call.index == delta.index]
        is_named = bool(delta.function and delta.function.name)
        if delta.id and (is_named or not same_index):
            known = [call for call in same_index if call.id == delta.id]
        elif is_named:
            known = [call for call in same_index if not call.name]
        else:
            known = same_index or self._calls
        if known:
            return known[-1]
        self._calls.append(_PartialCall(delta.index))
        return self._calls[-1]


def _text(piece: object) -> str:
    """Return a piece of text, nothing for what some servers send in its place."""
    return piece if isinstance(piece, str) else ""


def _joined(pieces: Sequence[str]) -> str:
    """Join text; half an emoji at the end of a piece is whole again with the other half."""
    return well_formed("".join(pieces))


def usage_of(usage: CompletionUsage) -> Usage:
    """Read what the server bills, as far as it says."""
    details = usage.prompt_tokens_details
    return Usage(
        prompt_tokens=usage.prompt_tokens or 0,
        completion_tokens=usage.completion_tokens or 0,
        cached_tokens=(details.cached_tokens or 0) if details else 0,
    )


def new_call_id() -> str:
    """Return an id for a call whose server gave none."""
    return f"call_{token_hex(8)}"
