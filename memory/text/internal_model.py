"""The border to the model that answers internal calls; the person never sees what it says."""

from collections.abc import Mapping
from typing import Protocol

from memory.text.shape import Shape


class InternalModelUnavailable(Exception):  # noqa: N818 - says when
    """Raised when there is no usable answer now; what was known stays, and it is tried again.

    `rests_s` is for how many seconds nobody asks the model, because it fails for everybody; 0 when
    only this call failed.
    """

    def __init__(self, reason: str = "", *, rests_s: float = 0.0) -> None:
        super().__init__(reason)
        self.rests_s = rests_s


class InputRefused(InternalModelUnavailable):
    """Raised when the model refuses what it is given to read, or cannot hold that much."""


class InternalModel(Protocol):
    """Answers calls whose text nobody sees."""

    async def fill(self, instructions: str, content: str, shape: Shape) -> Mapping[str, object]:
        """Return the raw parts of a structured answer by name, `None` for a missing one.

        Raise `InternalModelUnavailable`, or `InputRefused` when less might pass.
        """
        ...

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose; raise `InternalModelUnavailable`."""
        ...
