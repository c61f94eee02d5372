"""Reads JSON that servers send: what is missing is empty, another shape is an error."""

from collections.abc import Mapping, Sequence
from secrets import token_hex

from bot.model.model_errors import (
    AnswerIncomplete,
    ContentRefused,
    ModelError,
    code_of,
    is_filtered,
)
from bot.reply.utf16 import well_formed

MAX_CALLS = 32
"""Tool calls of one answer; what a model asks for beyond that is not read."""
MAX_CALL_CHARS = 200_000
"""Characters of all calls of one answer, names and ids included."""


def object_of(given: object) -> Mapping[str, object]:
    """Return a JSON object, an empty one for null; raise `AnswerIncomplete` for anything else."""
    if given is None:
        return {}
    if isinstance(given, dict):
        return given
    raise AnswerIncomplete("no chunk")


def list_of(given: object) -> Sequence[object]:
    """Return a JSON list, an empty one for null; raise `AnswerIncomplete` for anything else."""
    if given is None:
        return ()
    if isinstance(given, list):
        return given
    raise AnswerIncomplete("no chunk")


def text_of(piece: object) -> str:
    """Return a piece of text, nothing for what some servers send in its place."""
    return piece if isinstance(piece, str) else ""


def count_of(given: object) -> int:
    """Return a number of tokens, 0 for what is none."""
    return given if isinstance(given, int) and 0 <= given < 2**53 else 0


def joined(pieces: Sequence[str]) -> str:
    """Join text; half an emoji at the end of a piece is whole again with the other half."""
    return well_formed("".join(pieces))


def reported_error(event: Mapping[str, object]) -> ModelError:
    """Return what an error inside of a stream means; its words may quote a person's."""
    code = code_of(event)
    if is_filtered(code, str(event.get("error") or event.get("message"))):
        return ContentRefused(code=code)
    return AnswerIncomplete("the server reported an error", code=code)


class BoundedText:
    """Text that comes in pieces; `is_full` once there was more than `max_chars`, which is cut."""

    def __init__(self, max_chars: int | None) -> None:
        self._left = max_chars
        self._pieces: list[str] = []
        self.is_full = False

    def add(self, piece: str) -> None:
        """Take a piece."""
        if self._left is not None:
            self.is_full = len(piece) > self._left
            piece = piece[: self._left]
            self._left -= len(piece)
        if piece:
            self._pieces.append(piece)

    def joined(self) -> str:
        """Return the text so far."""
        return joined(self._pieces)


def new_call_id() -> str:
    """Return an id for a call whose server gave none."""
    return f"call_{token_hex(8)}"
