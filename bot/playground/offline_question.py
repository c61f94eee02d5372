"""The question of a prompt, as the rules of the offline model read it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.model.call import PromptMessage
from bot.telegram.edits import PHOTO_MARK
from memory.behaviors.steps import ToolCall
from memory.message import Picture

_MEMORY = re.compile(r"(?<!\s)\s*+<memory>(.*?)</memory>\s*+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OfflineQuestion:
    """A prompt as the rules read it.

    `text` is the person's message, `memory` the inside of the memory section, `earlier` what people
    said before in the window, `results` the tool calls of this turn with their results.
    """

    text: str
    memory: str
    earlier: tuple[str, ...]
    results: tuple[tuple[ToolCall, str], ...]
    is_first: bool
    pictures: tuple[Picture, ...] = ()

    @classmethod
    def of(cls, messages: Sequence[PromptMessage]) -> "OfflineQuestion":
        """Return the question of a prompt."""
        *earlier, asked = [message for message in messages if message.role == "user"]
        last = asked.content
        memory = _MEMORY.match(last)
        calls = {call.id: call for message in messages for call in message.tool_calls}
        start = max(at for at, message in enumerate(messages) if message.role == "user")
        return cls(
            _MEMORY.sub("", last, count=1).replace(PHOTO_MARK, "").strip(),
            memory[1].strip() if memory else "",
            tuple(message.content for message in earlier),
            tuple((calls[m.tool_call_id], m.content) for m in messages[start:] if m.role == "tool"),
            all(message.role != "assistant" or message.tool_calls for message in messages),
            asked.pictures,
        )
