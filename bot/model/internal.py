"""The model of internal calls as `memory` knows it: its trouble is that there is no answer now."""

from collections.abc import Mapping

from bot.model.model_errors import ContentRefused, ContextTooLong, ModelError
from bot.model.structured import StructuredModel
from memory.text.internal_model import InputRefused, InternalModelUnavailable
from memory.text.shape import Shape


class InternalCalls:
    """Answers internal calls by a structured model."""

    def __init__(self, model: StructuredModel) -> None:
        self._model = model

    async def fill(self, instructions: str, content: str, shape: Shape) -> Mapping[str, object]:
        """Return the raw parts of an answer; raise `InternalModelUnavailable`."""
        try:
            return await self._model.fill(instructions, content, shape)
        except (ContentRefused, ContextTooLong) as error:
            raise InputRefused(type(error).__name__) from error
        except ModelError as error:
            raise InternalModelUnavailable(type(error).__name__) from error

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose; raise `InternalModelUnavailable`."""
        try:
            return await self._model.write(instructions, content, max_tokens)
        except ModelError as error:
            raise InternalModelUnavailable(type(error).__name__) from error
