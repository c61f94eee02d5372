"""The border between the agent and whichever model answers it: typed values and one protocol.

Nothing here knows the wire format or an SDK.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from memory.steps import ToolCall
from memory.tool import ToolDefinition


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt; an assistant message may carry calls, a tool message answers one."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server billed them; zeros where it does not say.

    `cached_tokens` are part of `prompt_tokens`; `reasoning_tokens` are part of `completion_tokens`.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One complete answer: a finish reason was seen, so nothing of it is missing."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: Usage = Usage()


class ChatModel(Protocol):
    """Answers a prompt, possibly by asking for tools."""

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
    ) -> ModelReply:
        """Return one complete answer; raise `ModelError` when there is none to be had."""
        ...
