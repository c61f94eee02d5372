"""How a model is, as far as one process knows: since when it fails, and why.

ModelCondition     one model
WatchedChatModel   keeps the condition of the model that answers people
"""

import time
from collections.abc import Callable, Sequence
from typing import Literal

from bot.model.call import NO_LABELS, CallLabels, ChatModel, ModelReply, PromptMessage
from bot.model.model_errors import ModelError, ModelRefused
from memory.behaviors.tool import ToolDefinition

Part = Literal["answers", "learning", "vectors"]
"""What a model is for."""

_FOR_ALL_AFTER_S = 60
_CERTAIN_FAILURES = 2


class ModelCondition:
    """One model; `setting` names it in the environment. Times are in Unix seconds, 0 for never."""

    def __init__(self, part: Part, setting: str, clock: Callable[[], float] = time.time) -> None:
        self.part: Part = part
        self.setting = setting
        self.answered_at = 0.0
        self.failing_since = 0.0
        self.error = ModelError()
        self._failures = 0
        self._clock = clock

    def answered(self) -> None:
        """Note an answer: whatever failed before is over."""
        self.answered_at = self._clock()
        self.failing_since, self._failures = 0.0, 0

    def failed(self, error: ModelError) -> None:
        """Note a call that brought no answer."""
        self.failing_since = self.failing_since or self._clock()
        self._failures += 1
        self.error = error

    @property
    def fails_for_all(self) -> bool:
        """Whether no call has brought an answer for a minute, and not because of one message."""
        if not self.failing_since or self._clock() - self.failing_since < _FOR_ALL_AFTER_S:
            return False
        error = self.error
        is_one_message = isinstance(error, ModelRefused) and error.may_concern_messages
        return self._failures >= _CERTAIN_FAILURES or not is_one_message


class WatchedChatModel:
    """Answers people by another model, and notes how that is."""

    def __init__(self, model: ChatModel, condition: ModelCondition) -> None:
        self._model = model
        self._condition = condition

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,
    ) -> ModelReply:
        """Return one complete answer; raise `ModelError`."""
        try:
            reply = await self._model.complete(
                messages, tools, tool_choice=tool_choice, labels=labels
            )
        except ModelError as error:
            self._condition.failed(error)
            raise
        self._condition.answered()
        return reply
