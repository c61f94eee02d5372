"""The border to the model of internal calls; people never see its answers."""

from collections.abc import Mapping
from typing import Protocol

from memory.text.shape import AnswerShape


class ModelTrouble(Exception):
    """Base of the errors that are raised if a model gives no usable answer now.

    `rests_s`: the model fails for everybody and is not asked for this many seconds; 0 if only this
    call failed.
    """

    def __init__(self, reason: str = "", *, rests_s: float = 0.0) -> None:
        super().__init__(reason)
        self.rests_s = rests_s


class InternalModelUnavailable(ModelTrouble):
    """Raised if the internal model fails. Nothing is changed, and learning tries again."""


class InputRefused(InternalModelUnavailable):
    """Raised if the model refuses its input, or if the input is too long for it."""


class InternalModel(Protocol):
    """Answers internal calls."""

    async def fill(
        self, instructions: str, content: str, shape: AnswerShape
    ) -> Mapping[str, object]:
        """Return the raw parts of a structured answer by name, None for a missing part.

        Raise `InternalModelUnavailable`, or `InputRefused` if a shorter input might pass.
        """
        ...

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return plain text; raise `InternalModelUnavailable`."""
        ...
