"""The border to the model that answers internal calls; the person never sees what it says."""

from collections.abc import Mapping
from typing import Protocol

from memory.shape import Shape


class InternalModelUnavailable(Exception):  # noqa: N818 - says when
    """Raised when there is no usable answer now; what was known stays, and it is tried again."""


class InternalModel(Protocol):
    """Answers calls whose text nobody sees."""

    async def fill(self, instructions: str, material: str, shape: Shape) -> Mapping[str, object]:
        """Return the raw parts of a structured answer by name, `None` for a missing one.

        Raise `InternalModelUnavailable`.
        """
        ...

    async def write(self, instructions: str, material: str, max_tokens: int) -> str:
        """Return prose; raise `InternalModelUnavailable`."""
        ...
