"""What each call of a model tells its observers once it is over.

An observer is a callable. It returns at once and changes nothing: metrics count, the usage recorder
bills, tests look on. It is called in the task that made the call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bot.model.call import Usage

CallKind: TypeAlias = Literal["answer", "internal", "embedding"]
WhichModel: TypeAlias = Literal["first", "second"]
"""`OPENAI_MODEL` and `OPENAI_MEMORY_MODEL` name the first model, `FALLBACK_MODEL` the second."""

_NOTHING_BILLED = Usage()


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call, with all requests that it took.

    `model` is the model's name. `outcome` is "ok" or the name of the error; `usage` counts also
    what a failed call was billed. With `is_reply` the answer has no tool calls: the reply of the
    turn follows at once.
    """

    kind: CallKind
    model: str
    which: WhichModel
    seconds: float
    usage: Usage = _NOTHING_BILLED
    outcome: str = "ok"
    is_reply: bool = False


ModelObserver: TypeAlias = Callable[[CallReport], None]
